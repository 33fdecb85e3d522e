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
  uint64_t current = 0;  // the calling thread's context, 0 for none

  int open(hostwait_cai_error* err);
  int reread_current();

  // For 1 and 2 the context must be known.
  int name(uint64_t stream, uint64_t context, stream_ref* out);
  // Where the data of `ready` live: what its stream 1 or 2 belongs to.
  int data_context(const hostwait_cai_ready& ready, uint64_t* context);
  // cuPointerGetAttributes, also on a thread without a context. Returns the driver's result.
  int ask_pointer(unsigned count, int* attributes, void** results, uint64_t ptr, int device);
  int probe(const stream_ref& stream, capture_state* out);
  int is_blocking(const stream_ref& stream, bool* blocking);

  // Records on `from` and makes `to` wait. `captured`: both are in one capture.
  int order(const stream_ref& from, const stream_ref& to, bool captured);
  int record(uint64_t event, const stream_ref& on);
  int wait(const stream_ref& stream, uint64_t event, unsigned flags);
  int new_event(uint64_t context, uint64_t* event);
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
