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

  int open(hostwait_cai_error* err);
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

  // Records this thread's event of that kind on `from`. Corrects the context of `from` where the
  // memory of handles was out of date. `alive`: see slot_for.
  enum class edge_kind : uint8_t { there, back, captured };
  int mark(stream_ref* from, edge_kind kind, bool alive, uint64_t* event);
  int record(uint64_t event, const stream_ref& on);
  int wait(const stream_ref& stream, uint64_t event, unsigned flags);
  int new_event(uint64_t context, uint64_t* event);

 private:
  template <typename Call>
  int call_on(const stream_ref& stream, Call&& call);

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

}  // namespace hostwait::cai
