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

int session::open_first() {
  if (const int code = require_driver(sink, &driver)) return code;
  if (thread != nullptr) return HOSTWAIT_CAI_OK;
  return fail(sink, HOSTWAIT_CAI_ERR_NO_MEMORY, "", -1, "out of memory");
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

int session::name(uint64_t stream, uint64_t context, stream_ref* out) {
  *out = {stream, context};
  if (stream <= HOSTWAIT_CAI_PER_THREAD) return HOSTWAIT_CAI_OK;
  void* owner = nullptr;
  const int result = driver->stream_get_ctx(handle(stream), &owner);
  if (result != cu_success) return driver_failure(sink, result, "cuStreamGetCtx");
  out->context = value(owner);
  return HOSTWAIT_CAI_OK;
}

int session::name_first(uint64_t stream, uint64_t context, stream_ref* out) {
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

int session::judge_probe(const stream_ref& stream, int result, int status, capture_state* out) {
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

// An event of another context than the stream's: was the handle used again elsewhere?
int session::mark_again(int result, stream_ref* from, edge_kind kind, uint64_t* event) {
  const auto forget = [this](uint64_t stream) {
    for (known_stream& known : thread->known) {
      if (known.stream == stream) known = {};
    }
  };
  forget(from->stream);
  const uint64_t context = from->context;
  if (result != cu_invalid_handle || from->stream <= HOSTWAIT_CAI_PER_THREAD ||
      name(from->stream, 0, from) != HOSTWAIT_CAI_OK || from->context == context) {
    return driver_failure(sink, result, "cuEventRecord");
  }
  clear(sink.target);
  const event_slot* slot = nullptr;
  if (const int code = slot_for(from->context, false, &slot)) return code;
  *event = value(slot->events[static_cast<size_t>(kind)]);
  return record(*event, *from);
}

}  // namespace hostwait::cai
