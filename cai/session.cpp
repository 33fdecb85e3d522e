// SPDX-License-Identifier: Apache-2.0
// Copyright The hostwait authors
// Driver calls in the right context, each checked.
#include "session.hpp"

namespace hostwait::cai {

in_context::in_context(const session& s, uint64_t context) : session_(s) {
  if (context == 0 || context == s.current) return;
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
  return reread_current();
}

int session::reread_current() {
  void* context = nullptr;
  const int result = driver->ctx_get_current(&context);
  if (result != cu_success) return driver_failure(sink, result, "cuCtxGetCurrent");
  current = value(context);
  return HOSTWAIT_CAI_OK;
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
  *context = current;
  if (current != 0) return HOSTWAIT_CAI_OK;
  return driver_failure(sink, cu_invalid_context, "cuCtxGetCurrent");
}

int session::ask_pointer(unsigned count, int* attributes, void** results, uint64_t ptr,
                         int device) {
  const int result = driver->pointer_get_attributes(count, attributes, results, ptr);
  if (result != cu_invalid_context || current != 0) return result;
  // Some context must be current: that of the stated device, else of the first.
  uint64_t context = 0;
  if (primary_context(*driver, device >= 0 ? device : 0, &context) != cu_success) return result;
  const in_context scope(*this, context);
  if (scope.result() != cu_success) return scope.result();
  return driver->pointer_get_attributes(count, attributes, results, ptr);
}

int session::probe(const stream_ref& stream, capture_state* out) {
  *out = {};
  const in_context scope(
      *this, stream.stream <= HOSTWAIT_CAI_PER_THREAD || current == 0 ? stream.context : 0);
  if (scope.result() != cu_success) return driver_failure(sink, scope.result(), "cuCtxPushCurrent");
  int status = cu_capture_none;
  int result = driver->stream_is_capturing(handle(stream.stream), &status);
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
  const in_context scope(*this, on.context);
  if (scope.result() != cu_success) return driver_failure(sink, scope.result(), "cuCtxPushCurrent");
  const int result = driver->event_record(handle(event), handle(on.stream));
  return result == cu_success ? HOSTWAIT_CAI_OK : driver_failure(sink, result, "cuEventRecord");
}

int session::wait(const stream_ref& stream, uint64_t event, unsigned flags) {
  // A handle names its context itself; but some context must be current.
  const in_context scope(
      *this, stream.stream <= HOSTWAIT_CAI_PER_THREAD || current == 0 ? stream.context : 0);
  if (scope.result() != cu_success) return driver_failure(sink, scope.result(), "cuCtxPushCurrent");
  const int result = driver->stream_wait_event(handle(stream.stream), handle(event), flags);
  return result == cu_success ? HOSTWAIT_CAI_OK : driver_failure(sink, result, "cuStreamWaitEvent");
}

int session::order(const stream_ref& from, const stream_ref& to, bool captured) {
  uint64_t event = 0;
  {
    const in_context scope(*this, from.context);
    if (scope.result() != cu_success) {
      return driver_failure(sink, scope.result(), "cuCtxPushCurrent");
    }
    event_slot slot;
    if (const int code = slot_for(thread, *driver, from.context, sink, &slot)) return code;
    event = value(captured ? slot.capture : slot.wait);
    const int result = driver->event_record(handle(event), handle(from.stream));
    if (result != cu_success) return driver_failure(sink, result, "cuEventRecord");
  }
  return wait(to, event, 0);
}

}  // namespace hostwait::cai
