// SPDX-License-Identifier: Apache-2.0
// Copyright The hostwait authors
// The recording driver.
#include "fake_driver.hpp"

#include <cstring>

namespace cai_test {

fake_driver* in_use = nullptr;

namespace {

std::recursive_mutex lock;
thread_local std::vector<uint64_t> stack;
thread_local fake_driver* stack_of = nullptr;
thread_local int capture_mode = 0;  // global
uint64_t next_event = 0x9000;

std::vector<uint64_t>& context_stack() {
  if (stack_of != in_use) {
    stack.clear();
    if (in_use->initial_context != 0) stack.push_back(in_use->initial_context);
    stack_of = in_use;
  }
  return stack;
}

uint64_t top() {
  return context_stack().empty() ? 0 : context_stack().back();
}
uint64_t value(const void* handle) {
  return reinterpret_cast<uint64_t>(handle);
}

struct call {
  std::lock_guard<std::recursive_mutex> guard{lock};
  explicit call(const char* name) {
    ++in_use->calls;
    ++in_use->count[name];
  }
  int end(int result) const {
    if (result != success && result != not_ready && result != capture_implicit) ++in_use->errors;
    return result;
  }
};

// A call that a global-mode capture of another thread does not survive.
void unsafe() {
  ++in_use->unsafe_calls;
  if (in_use->captures_elsewhere && capture_mode != 2) in_use->capture_broken = true;
}

bool known(uint64_t stream, uint64_t* context) {
  if (stream == 1 || stream == 2) {
    *context = top();
    return *context != 0;
  }
  const auto found = in_use->streams.find(stream);
  if (found == in_use->streams.end()) return false;
  *context = found->second.context;
  return true;
}

int64_t capture_of(uint64_t stream) {
  const auto found = in_use->streams.find(stream);
  if (found == in_use->streams.end()) return 0;
  const auto capture = in_use->captures.find(found->second.name);
  return capture == in_use->captures.end() ? 0 : capture->second;
}

// The legacy stream while a blocking stream of the context captures.
bool legacy_forbidden(uint64_t stream) {
  if (stream != 1) return false;
  for (const auto& [handle, s] : in_use->streams) {
    if (s.blocking && s.context == top() && capture_of(handle) != 0) return true;
  }
  return false;
}

int ctx_get_current(void** context) {
  const call c("ctx_get_current");
  *context = reinterpret_cast<void*>(top());
  return c.end(success);
}
int ctx_push_current(void* context) {
  const call c("ctx_push_current");
  if (!in_use->contexts.count(value(context))) return c.end(invalid_context);
  context_stack().push_back(value(context));
  return c.end(success);
}
int ctx_pop_current(void** context) {
  const call c("ctx_pop_current");
  if (context_stack().empty()) return c.end(invalid_context);
  *context = reinterpret_cast<void*>(top());
  context_stack().pop_back();
  return c.end(success);
}
int ctx_get_device(int* device) {
  const call c("ctx_get_device");
  if (top() == 0) return c.end(invalid_context);
  *device = in_use->contexts[top()].device;
  return c.end(success);
}
int ctx_get_id(void* context, unsigned long long* id) {
  const call c("ctx_get_id");
  const auto found = in_use->contexts.find(value(context));
  if (found == in_use->contexts.end()) return c.end(invalid_context);
  *id = found->second.id;
  return c.end(success);
}
int ctx_synchronize() {
  const call c("ctx_synchronize");
  ++in_use->ordering_calls;
  if (top() == 0) return c.end(invalid_context);
  if (!in_use->captures.empty()) in_use->capture_broken = true;
  unsafe();
  in_use->actions.push_back("HOST(" + in_use->contexts[top()].name + ")");
  return c.end(success);
}
int primary_ctx_retain(void** context, int device) {
  const call c("primary_ctx_retain");
  for (const auto& [handle, known_context] : in_use->contexts) {
    if (!known_context.primary || known_context.device != device) continue;
    *context = reinterpret_cast<void*>(handle);
    return c.end(success);
  }
  return c.end(invalid_value);
}
int stream_get_ctx(void* stream, void** context) {
  const call c("stream_get_ctx");
  uint64_t owner = 0;
  if (!known(value(stream), &owner)) return c.end(invalid_handle);
  *context = reinterpret_cast<void*>(owner);
  return c.end(success);
}
int stream_get_flags(void* stream, unsigned* flags) {
  const call c("stream_get_flags");
  uint64_t owner = 0;
  if (!known(value(stream), &owner)) return c.end(invalid_handle);
  *flags = value(stream) > 2 && !in_use->streams[value(stream)].blocking ? 1 : 0;
  return c.end(success);
}
int stream_query(void* stream) {
  const call c("stream_query");
  uint64_t owner = 0;
  unsafe();
  if (!known(value(stream), &owner)) return c.end(invalid_handle);
  if (capture_of(value(stream)) != 0) in_use->capture_broken = true;
  if (legacy_forbidden(value(stream))) return c.end(capture_implicit);
  return c.end(in_use->busy ? not_ready : success);
}
int stream_is_capturing(void* stream, int* status) {
  const call c("stream_is_capturing");
  uint64_t owner = 0;
  if (!known(value(stream), &owner)) return c.end(invalid_handle);
  if (legacy_forbidden(value(stream))) return c.end(capture_implicit);
  const int64_t capture = capture_of(value(stream));
  *status = capture == 0 ? 0 : capture < 0 ? 2 : 1;
  return c.end(success);
}
int stream_get_capture_info(void* stream, int* status, uint64_t* id, void**, const void* const**,
                            size_t*) {
  const call c("stream_get_capture_info");
  const int64_t capture = capture_of(value(stream));
  *status = capture == 0 ? 0 : capture < 0 ? 2 : 1;
  *id = static_cast<uint64_t>(capture);
  return c.end(success);
}
int event_create(void** event, unsigned) {
  const call c("event_create");
  unsafe();
  if (top() == 0) return c.end(invalid_context);
  const uint64_t handle = next_event += 0x10;
  in_use->events[handle] = {top(), in_use->contexts[top()].id, "", "", 0};
  *event = reinterpret_cast<void*>(handle);
  return c.end(success);
}
int event_destroy(void* event) {
  const call c("event_destroy");
  in_use->destroyed.push_back(value(event));
  return c.end(in_use->events.erase(value(event)) == 1 ? success : invalid_handle);
}
int event_record(void* event, void* stream) {
  const call c("event_record");
  ++in_use->ordering_calls;
  uint64_t owner = 0;
  const auto found = in_use->events.find(value(event));
  if (found == in_use->events.end() || !known(value(stream), &owner)) return c.end(invalid_handle);
  fake_event& e = found->second;
  if (e.context != owner || e.context_id != in_use->contexts[owner].id) {
    return c.end(invalid_handle);
  }
  if (legacy_forbidden(value(stream))) {
    in_use->capture_broken = true;
    return c.end(capture_implicit);
  }
  e.recorded_on = in_use->stream_name(value(stream));
  e.capture = static_cast<uint64_t>(capture_of(value(stream)));
  (e.capture != 0 ? in_use->captured_events : in_use->plain_events).insert(value(event));
  in_use->records.push_back(e.recorded_on);
  in_use->event_contexts.push_back(in_use->contexts[owner].name);
  return c.end(success);
}
int stream_wait_event(void* stream, void* event, unsigned flags) {
  const call c("stream_wait_event");
  ++in_use->ordering_calls;
  uint64_t owner = 0;
  const auto found = in_use->events.find(value(event));
  if (top() == 0) return c.end(invalid_context);
  if (found == in_use->events.end() || !known(value(stream), &owner)) return c.end(invalid_handle);
  if (legacy_forbidden(value(stream))) {
    in_use->capture_broken = true;
    return c.end(capture_implicit);
  }
  const fake_event& e = found->second;
  const std::string to = in_use->stream_name(value(stream));
  const bool external = flags == 1;
  if (static_cast<uint64_t>(capture_of(value(stream))) != e.capture && !external) {
    in_use->capture_broken = true;
    return c.end(capture_isolation);
  }
  if (!e.name.empty()) {
    in_use->actions.push_back("WAIT_EVENT(" + e.name + "->" + to + ")");
  } else {
    const char* verb = external ? "EXTERNAL(" : in_use->releasing ? "BACK(" : "WAIT(";
    in_use->actions.push_back(verb + e.recorded_on + "->" + to + ")");
  }
  return c.end(success);
}
int event_query(void* event) {
  const call c("event_query");
  unsafe();
  if (!in_use->events.count(value(event))) return c.end(invalid_handle);
  return c.end(in_use->busy ? not_ready : success);
}
int event_synchronize(void* event) {
  const call c("event_synchronize");
  ++in_use->ordering_calls;
  unsafe();
  const auto found = in_use->events.find(value(event));
  if (found == in_use->events.end()) return c.end(invalid_handle);
  const fake_event& e = found->second;
  in_use->actions.push_back(e.name.empty() ? "HOST(" + e.recorded_on + ")"
                                           : "HOST_EVENT(" + e.name + ")");
  return c.end(success);
}
int pointer_get_attributes(unsigned count, int* attributes, void** data, uint64_t ptr) {
  const call c("pointer_get_attributes");
  const fake_memory* m = nullptr;
  for (const fake_memory& candidate : in_use->memory) {
    if (ptr >= candidate.address && ptr < candidate.address + candidate.bytes) m = &candidate;
  }
  const bool host = m == nullptr || m->kind == "host";
  for (unsigned i = 0; i < count; ++i) {
    switch (attributes[i]) {
      case 1: {
        uint64_t context = 0;
        for (const auto& [handle, known_context] : in_use->contexts) {
          if (!host && known_context.primary && known_context.device == m->device) context = handle;
        }
        memcpy(data[i], &context, sizeof context);
        break;
      }
      case 2: {
        const unsigned type = host ? 0 : m->kind == "pinned" ? 1 : 2;
        memcpy(data[i], &type, sizeof type);
        break;
      }
      case 3: {
        const uint64_t usable = host                     ? 0
                                : m->device_address != 0 ? ptr - m->address + m->device_address
                                                         : ptr;
        memcpy(data[i], &usable, sizeof usable);
        break;
      }
      case 8: {
        const unsigned managed = !host && m->kind == "managed";
        memcpy(data[i], &managed, sizeof managed);
        break;
      }
      case 9: {
        const int device = host ? -2 : m->device;
        memcpy(data[i], &device, sizeof device);
        break;
      }
      case 11:
        memcpy(data[i], host ? &ptr : &m->range_start, sizeof ptr);
        break;
      case 12: {
        const size_t bytes = host ? 0 : m->range_bytes;
        memcpy(data[i], &bytes, sizeof bytes);
        break;
      }
      default:
        return c.end(invalid_value);
    }
  }
  return c.end(success);
}
int device_can_access_peer(int* can, int, int) {
  const call c("device_can_access_peer");
  *can = in_use->peer_access;
  return c.end(success);
}
int device_get_attribute(int* out, int attribute, int) {
  const call c("device_get_attribute");
  if (attribute != 88) return c.end(invalid_value);
  *out = in_use->pageable_access;
  return c.end(success);
}
int thread_exchange_capture_mode(int* mode) {
  const call c("thread_exchange_capture_mode");
  std::swap(*mode, capture_mode);
  return c.end(success);
}
int get_error_name(int, const char** name) {
  *name = "CUDA_ERROR_OF_THE_TEST";
  return success;
}

}  // namespace

uint64_t fake_driver::current() const {
  return top();
}

std::string fake_driver::stream_name(uint64_t stream) const {
  const auto found = streams.find(stream);
  if (found != streams.end()) return found->second.name;
  const auto context = contexts.find(top());
  return std::to_string(stream) + "@" + (context != contexts.end() ? context->second.name : "none");
}

hostwait_cai_driver fake_driver::table() const {
  hostwait_cai_driver t;
  HOSTWAIT_CAI_INIT(t);
  t.ctx_get_current = ctx_get_current;
  t.ctx_push_current = ctx_push_current;
  t.ctx_pop_current = ctx_pop_current;
  t.ctx_get_device = ctx_get_device;
  t.ctx_get_id = ctx_get_id;
  t.ctx_synchronize = ctx_synchronize;
  t.primary_ctx_retain = primary_ctx_retain;
  t.stream_get_ctx = stream_get_ctx;
  t.stream_get_flags = stream_get_flags;
  t.stream_query = stream_query;
  t.stream_is_capturing = stream_is_capturing;
  t.stream_get_capture_info = stream_get_capture_info;
  t.stream_wait_event = stream_wait_event;
  t.event_create = event_create;
  t.event_destroy = event_destroy;
  t.event_record = event_record;
  t.event_query = event_query;
  t.event_synchronize = event_synchronize;
  t.pointer_get_attributes = pointer_get_attributes;
  t.device_can_access_peer = device_can_access_peer;
  t.device_get_attribute = device_get_attribute;
  t.thread_exchange_capture_mode = thread_exchange_capture_mode;
  t.get_error_name = get_error_name;
  return t;
}

void fake_driver::use() {
  in_use = this;
  stack_of = nullptr;
  const hostwait_cai_driver t = table();
  hostwait_cai_set_driver(&t);
}

}  // namespace cai_test
