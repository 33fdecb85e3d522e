// SPDX-License-Identifier: Apache-2.0
// Copyright The hostwait authors
// One call into the library that needs the driver: contexts, capture states, record-and-wait.
#pragma once

#include "thread_state.hpp"

namespace hostwait::cai {

// A stream without ambiguity: two are the same exactly if both members are equal.
struct stream_ref {
  uint64_t stream, context;
  bool operator==(const stream_ref&) const = default;
};

// What a stream does at this moment. `implicit`: the legacy stream while a blocking stream of its
// context captures; any use but the question itself would break that capture or fail.
struct capture_state {
  enum kind : uint8_t { none, active, invalidated, implicit } status = none;
  uint64_t id = 0;
  bool operator==(const capture_state&) const = default;
};

struct session {
  const hostwait_cai_driver* driver = nullptr;
  thread_state* thread = nullptr;
  error_sink sink{};

  int open(hostwait_cai_error* err) {
    sink.target = err;
    driver = loaded_driver();
    thread = this_thread();
    return __builtin_expect(driver != nullptr && thread != nullptr, 1) ? HOSTWAIT_CAI_OK
                                                                       : open_first();
  }
  // The same for a stream whose end is to be marked by an event that outlives the call: refused,
  // with the sentence `captured`, while the stream captures.
  int open_on(hostwait_cai_stream stream, const char* captured, hostwait_cai_error* err,
              stream_ref* out);

  // The calling thread's context, 0 for none. Asked for when first needed: work on stream handles
  // does without.
  uint64_t current() const;
  void forget_current() { current_known_ = false; }

  // For 1 and 2 the context must be known.
  int name(uint64_t stream, uint64_t context, stream_ref* out);
  // The same from this thread's memory of handles. It may be out of date where a handle was used
  // again in another context: good for finding an event, which order() checks, and for no decision.
  int name_again(uint64_t stream, uint64_t context, stream_ref* out);
  // Where the data of `ready` live: what its stream 1 or 2 belongs to.
  int data_context(const hostwait_cai_ready& ready, uint64_t* context);
  // cuPointerGetAttributes, also on a thread without a context. Returns the driver's result.
  int ask_pointer(unsigned count, int* attributes, void** results, uint64_t ptr, int device);
  int probe(const stream_ref& stream, capture_state* out);
  int is_blocking(const stream_ref& stream, bool* blocking);

  // The events of `context`, created as needed. `alive`: this thread has asked for them before, and
  // a stream of that context has been alive ever since. Otherwise the driver is asked whether it is
  // still the same context: one that was destroyed has taken its events along, its address may be
  // in use again, and the driver does not survive a handle that is gone.
  int slot_for(uint64_t context, bool alive, const event_slot** out) const;

  // Records this thread's event of that kind on `from`. Corrects the context of `from` where the
  // memory of handles was out of date. `alive`: see slot_for.
  int mark(stream_ref* from, edge_kind kind, bool alive, uint64_t* event);
  int record(uint64_t event, const stream_ref& on);
  int wait(const stream_ref& stream, uint64_t event, unsigned flags);
  int new_event(uint64_t context, uint64_t* event);

 private:
  int open_first();
  int name_first(uint64_t stream, uint64_t context, stream_ref* out);
  int judge_probe(const stream_ref& stream, int result, int status, capture_state* out);
  int mark_again(int result, stream_ref* from, edge_kind kind, uint64_t* event);
  template <typename Call>
  int call_on(const stream_ref& stream, Call call);
  template <typename Call>
  int call_elsewhere(const stream_ref& stream, int result, Call call);

  mutable uint64_t current_ = 0;
  mutable bool current_known_ = false;
};

// Makes `context` current for its lifetime, unless it is already (or is 0).
class in_context {
 public:
  in_context(const session& s, uint64_t context);
  ~in_context();
  in_context(const in_context&) = delete;
  in_context& operator=(const in_context&) = delete;
  int result() const { return result_; }

 private:
  const session& session_;
  bool pushed_ = false;
  int result_ = cu_success;
};

// Calls that another thread's global-mode capture would be broken by are allowed inside: this
// thread has no capture of its own that they could reach.
class relaxed_capture_mode {
 public:
  explicit relaxed_capture_mode(const hostwait_cai_driver& driver);
  ~relaxed_capture_mode();
  relaxed_capture_mode(const relaxed_capture_mode&) = delete;
  relaxed_capture_mode& operator=(const relaxed_capture_mode&) = delete;

 private:
  const hostwait_cai_driver& driver_;
  int mode_ = cu_capture_mode_relaxed;
};

// What every handshake runs through, to be inlined; the rarer rest is in session.cpp.

// A handle names its context itself, so the call is first made in whatever context is current. That
// it needs one, or the stream's own, shows in the result; such a refusal has no effects.
template <typename Call>
[[gnu::always_inline]] inline int session::call_on(const stream_ref& stream, Call call) {
  int result = cu_success;
  if (stream.stream > HOSTWAIT_CAI_PER_THREAD) {
    result = call();
    if (__builtin_expect(result == cu_success, 1)) return result;
    if (result != cu_invalid_context && result != cu_invalid_handle) return result;
  }
  return call_elsewhere(stream, result, call);
}

template <typename Call>
[[gnu::noinline]] int session::call_elsewhere(const stream_ref& stream, int result, Call call) {
  stream_ref named = stream;
  if (stream.stream > HOSTWAIT_CAI_PER_THREAD) {
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

[[gnu::always_inline]] inline int session::name_again(uint64_t stream, uint64_t context,
                                                      stream_ref* out) {
  *out = {stream, context};
  if (stream <= HOSTWAIT_CAI_PER_THREAD) return HOSTWAIT_CAI_OK;
  for (const known_stream& known : thread->known) {
    if (known.stream != stream) continue;
    out->context = known.context;
    return HOSTWAIT_CAI_OK;
  }
  return name_first(stream, context, out);
}

[[gnu::always_inline]] inline int session::probe(const stream_ref& stream, capture_state* out) {
  *out = {};
  int status = cu_capture_none;
  const int result = call_on(stream, [ask = driver->stream_is_capturing, on = handle(stream.stream),
                                      &status] { return ask(on, &status); });
  if (__builtin_expect(result == cu_success && status == cu_capture_none, 1)) {
    return HOSTWAIT_CAI_OK;
  }
  return judge_probe(stream, result, status, out);
}

[[gnu::always_inline]] inline int session::wait(const stream_ref& stream, uint64_t event,
                                                unsigned flags) {
  const int result =
      call_on(stream, [wait = driver->stream_wait_event, on = handle(stream.stream),
                       event = handle(event), flags] { return wait(on, event, flags); });
  return result == cu_success ? HOSTWAIT_CAI_OK : driver_failure(sink, result, "cuStreamWaitEvent");
}

[[gnu::always_inline]] inline int session::slot_for(uint64_t context, bool alive,
                                                    const event_slot** out) const {
  event_slot* known = nullptr;
  for (uint32_t i = 0; i < thread->slot_count && known == nullptr; ++i) {
    if (thread->slots[i].context == context) known = &thread->slots[i];
  }
  *out = known;
  if (known != nullptr && alive) return HOSTWAIT_CAI_OK;
  const uint64_t id = context_id(*driver, context);
  if (known != nullptr && known->context_id == id) return HOSTWAIT_CAI_OK;
  return fill_slot(*this, context, id, known, out);
}

[[gnu::always_inline]] inline int session::mark(stream_ref* from, edge_kind kind, bool alive,
                                                uint64_t* event) {
  const event_slot* slot = nullptr;
  if (const int code = slot_for(from->context, alive, &slot)) return code;
  void* const own = slot->events[static_cast<size_t>(kind)];
  *event = value(own);
  const int result = call_on(*from, [record = driver->event_record, own,
                                     on = handle(from->stream)] { return record(own, on); });
  return result == cu_success ? HOSTWAIT_CAI_OK : mark_again(result, from, kind, event);
}

}  // namespace hostwait::cai
