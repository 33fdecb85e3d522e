// SPDX-License-Identifier: Apache-2.0
// Copyright The hostwait authors
// Driver calls in the right context, each checked.
#include "session.hpp"

namespace hostwait::cai {

in_context::in_context(const session& s, uint64_t context) : session_(s) {
  if (context == 0 || context == s.current()) return;
  result_ = s.driver->ctx_push_current(handle(context));
  pushed_ = result_ == cu_success;
}

in_context::~in_context() {
  void* popped = nullptr;
  if (pushed_) session_.driver->ctx_pop_current(&popped);
}

relaxed_capture_mode::relaxed_capture_mode(const hostwait_cai_driver& driver) : driver_(driver) {
  if (driver.thread_exchange_capture_mode != nullptr) driver.thread_exchange_capture_mode(&mode_);
}

relaxed_capture_mode::~relaxed_capture_mode() {
  if (driver_.thread_exchange_capture_mode != nullptr) driver_.thread_exchange_capture_mode(&mode_);
}

int session::open(hostwait_cai_error* err) {
  sink.target = err;
  if (const int code = require_driver(sink, &driver)) return code;
  thread = this_thread();
  if (thread == nullptr) {
    return fail(sink, HOSTWAIT_CAI_ERR_NO_MEMORY, "", -1, "out of memory");
  }
  return HOSTWAIT_CAI_OK;
}

int session::open_on(hostwait_cai_stream stream, const char* captured, hostwait_cai_error* err,
                     stream_ref* out) {
  if (stream.value == 0) {
    return fail({err}, HOSTWAIT_CAI_ERR_STREAM_ZERO, "stream", -1,
                "stream 0 is ambiguous: 1 is the legacy, 2 the per-thread default stream");
  }
  if (const int code = open(err)) return code;
  if (const int code = name(stream.value, current(), out)) return code;
  capture_state capture;
  if (const int code = probe(*out, &capture)) return code;
  if (capture.status == capture_state::none) return HOSTWAIT_CAI_OK;
  return fail(sink, HOSTWAIT_CAI_ERR_CAPTURE_BOUNDARY, "stream", -1, "%s", captured);
}

uint64_t session::current() const {
  if (!current_known_) {
    void* context = nullptr;
    current_ = driver->ctx_get_current(&context) == cu_success ? value(context) : 0;
    current_known_ = true;
  }
  return current_;
}

// A handle names its context itself, so the call is first made in whatever context is current. That
// it needs one, or the stream's own, shows in the result; such a refusal has no effects.
template <typename Call>
int session::call_on(const stream_ref& stream, Call&& call) {
  if (stream.stream > HOSTWAIT_CAI_PER_THREAD) {
    const int result = call();
    if (result != cu_invalid_context && result != cu_invalid_handle) return result;
    stream_ref named = stream;
    if (named.context == 0) {
      void* owner = nullptr;
      if (driver->stream_get_ctx(handle(stream.stream), &owner) != cu_success) return result;
      named.context = value(owner);
    }
    if (named.context == current()) return result;
    const in_context scope(*this, named.context);
    return scope.result() == cu_success ? call() : result;
  }
  const in_context scope(*this, stream.context);
  return scope.result() == cu_success ? call() : scope.result();
}

int session::name(uint64_t stream, uint64_t context, stream_ref* out) {
  *out = {stream, context};
  if (stream <= HOSTWAIT_CAI_PER_THREAD) return HOSTWAIT_CAI_OK;
  void* owner = nullptr;
  const int result = driver->stream_get_ctx(handle(stream), &owner);
  if (result != cu_success) return driver_failure(sink, result, "cuStreamGetCtx");
  out->context = value(owner);
  return HOSTWAIT_CAI_OK;
}

int session::name_again(uint64_t stream, uint64_t context, stream_ref* out) {
  *out = {stream, context};
  if (stream <= HOSTWAIT_CAI_PER_THREAD) return HOSTWAIT_CAI_OK;
  for (const known_stream& known : thread->known) {
    if (known.stream != stream) continue;
    out->context = known.context;
    return HOSTWAIT_CAI_OK;
  }
  if (const int code = name(stream, context, out)) return code;
  thread->known[thread->next_known++ % known_streams] = {stream, out->context};
  return HOSTWAIT_CAI_OK;
}

int session::data_context(const hostwait_cai_ready& ready, uint64_t* context) {
  *context = ready.context;
  if (*context != 0) return HOSTWAIT_CAI_OK;
  int device = ready.device;
  if (ready.ptr != 0) {
    void* owner = nullptr;
    int ordinal = -1;
    int attributes[] = {cu_attribute_context, cu_attribute_device_ordinal};
    void* results[] = {&owner, &ordinal};
    if (ask_pointer(2, attributes, results, ready.ptr, device) == cu_success) {
      *context = value(owner);
      if (device < 0) device = ordinal;
    }
    if (*context != 0) return HOSTWAIT_CAI_OK;
  }
  if (device >= 0) {
    const int result = primary_context(*driver, device, context);
    if (result == cu_success) return HOSTWAIT_CAI_OK;
    return driver_failure(sink, result, "cuDevicePrimaryCtxRetain");
  }
  *context = current();
  if (*context != 0) return HOSTWAIT_CAI_OK;
  return driver_failure(sink, cu_invalid_context, "cuCtxGetCurrent");
}

int session::ask_pointer(unsigned count, int* attributes, void** results, uint64_t ptr,
                         int device) {
  const int result = driver->pointer_get_attributes(count, attributes, results, ptr);
  if (result != cu_invalid_context || current() != 0) return result;
  // Some context must be current: that of the stated device, else of the first.
  uint64_t context = 0;
  if (primary_context(*driver, device >= 0 ? device : 0, &context) != cu_success) return result;
  const in_context scope(*this, context);
  if (scope.result() != cu_success) return scope.result();
  return driver->pointer_get_attributes(count, attributes, results, ptr);
}

int session::probe(const stream_ref& stream, capture_state* out) {
  *out = {};
  int status = cu_capture_none;
  int result =
      call_on(stream, [&] { return driver->stream_is_capturing(handle(stream.stream), &status); });
  if (result == cu_success && status == cu_capture_none) return HOSTWAIT_CAI_OK;
  if (result == cu_capture_implicit) {
    out->status = capture_state::implicit;
    return HOSTWAIT_CAI_OK;
  }
  if (result != cu_success) return driver_failure(sink, result, "cuStreamIsCapturing");
  if (status != cu_capture_active) {
    out->status = capture_state::invalidated;
    return HOSTWAIT_CAI_OK;
  }
  out->status = capture_state::active;
  // Without the id (driver before 11.3) two captures cannot be told apart; the stream's own
  // address then makes every pair different.
  out->id = stream.stream;
  if (driver->stream_get_capture_info == nullptr) return HOSTWAIT_CAI_OK;
  result = driver->stream_get_capture_info(handle(stream.stream), &status, &out->id, nullptr,
                                           nullptr, nullptr);
  if (result != cu_success) return driver_failure(sink, result, "cuStreamGetCaptureInfo");
  return HOSTWAIT_CAI_OK;
}

int session::is_blocking(const stream_ref& stream, bool* blocking) {
  *blocking = true;
  if (stream.stream <= HOSTWAIT_CAI_PER_THREAD) return HOSTWAIT_CAI_OK;
  unsigned flags = 0;
  const int result = driver->stream_get_flags(handle(stream.stream), &flags);
  if (result != cu_success) return driver_failure(sink, result, "cuStreamGetFlags");
  *blocking = !(flags & cu_stream_non_blocking);
  return HOSTWAIT_CAI_OK;
}

int session::new_event(uint64_t context, uint64_t* event) {
  const in_context scope(*this, context);
  if (scope.result() != cu_success) return driver_failure(sink, scope.result(), "cuCtxPushCurrent");
  const relaxed_capture_mode relaxed(*driver);
  void* made = nullptr;
  const int result = driver->event_create(&made, cu_event_disable_timing);
  if (result != cu_success) return driver_failure(sink, result, "cuEventCreate");
  add(thread->count.events_created);
  *event = value(made);
  return HOSTWAIT_CAI_OK;
}

int session::record(uint64_t event, const stream_ref& on) {
  const int result =
      call_on(on, [&] { return driver->event_record(handle(event), handle(on.stream)); });
  return result == cu_success ? HOSTWAIT_CAI_OK : driver_failure(sink, result, "cuEventRecord");
}

int session::wait(const stream_ref& stream, uint64_t event, unsigned flags) {
  const int result = call_on(stream, [&] {
    return driver->stream_wait_event(handle(stream.stream), handle(event), flags);
  });
  return result == cu_success ? HOSTWAIT_CAI_OK : driver_failure(sink, result, "cuStreamWaitEvent");
}

int session::mark(stream_ref* from, edge_kind kind, bool alive, uint64_t* event) {
  for (bool again = false;; again = true) {
    event_slot slot;
    if (const int code = slot_for(*this, from->context, alive && !again, &slot)) return code;
    void* const own = kind == edge_kind::there  ? slot.there
                      : kind == edge_kind::back ? slot.back
                                                : slot.capture;
    *event = value(own);
    const int result =
        call_on(*from, [&] { return driver->event_record(own, handle(from->stream)); });
    if (result == cu_success) return HOSTWAIT_CAI_OK;
    // An event of another context than the stream's: was the handle used again elsewhere?
    const uint64_t context = from->context;
    for (known_stream& known : thread->known) {
      if (known.stream == from->stream) known = {};
    }
    if (again || result != cu_invalid_handle || from->stream <= HOSTWAIT_CAI_PER_THREAD ||
        name(from->stream, 0, from) != HOSTWAIT_CAI_OK || from->context == context) {
      return driver_failure(sink, result, "cuEventRecord");
    }
    clear(sink.target);
  }
}

}  // namespace hostwait::cai
