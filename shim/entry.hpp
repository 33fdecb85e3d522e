// SPDX-License-Identifier: Apache-2.0
// Copyright The hostwait authors
// One intercepted call, from the wrapper's entry to its return. The wrappers themselves are
// expanded from calls.def in entry_wrappers.cpp; everything that is the same for all of them is
// here, so that a wrapper is: facts, before(), the driver's function, after().
#pragma once

#include <cstdint>

#include "captures.hpp"
#include "classify.hpp"
#include "policy.hpp"
#include "queues.hpp"
#include "record.hpp"
#include "row.hpp"
#include "state.hpp"
#include "unwind.hpp"

namespace hostwait::entry {

// Lives on the wrapper's stack. No destructor: cancellation, longjmp and foreign unwinding pass
// through a wrapper as through the driver's own function.
struct call_context {
  row_id row;
  std::uint8_t copy;
  std::uint8_t action;
  bool in_capture;
  bool own_work_done;  // what the call would wait for is known to be done already
  policy::before_call now;
  call_facts facts;
  judgement verdict;
  unwind::registers caller;
  record::thread_writer* writer;
  std::uint64_t start_ns;
  captures::reach captures;  // the open captures that the call can be about
  queues::mark queued;
  record::tally at;  // where the call counts; found before it where it can wait
};

enum class path : std::uint8_t {
  record,   // make the call, then after()
  through,  // make the call, nothing else: nested, or allowed
  refuse,   // return CUDA_ERROR_NOT_PERMITTED
};

HOSTWAIT_HOT path before(call_context&) noexcept;
HOSTWAIT_HOT void after(call_context&, int result) noexcept;

// Asks and decides: fills verdict, in_capture and captures.
void judge(call_context&) noexcept;

// Everything that makes two calls the same finding; `frames` and `label` belong to the caller and
// are what the key points to.
struct site_storage {
  std::uintptr_t frames[64];
  char label[policy::label_bytes];
};
HOSTWAIT_HOT record::site_key key_of(const call_context&, site_storage&) noexcept;

// Rows of type `state` are made as they are, and looked at before and after.
int before_state(row_id row, const call_facts&, const unwind::registers& caller) noexcept;
void after_state(row_id row, const call_facts&, int result, int noted) noexcept;

// Whether the driver's answer says that this call broke an open capture, which is then told with
// both threads and call sites. `refused`: the call was not made, and would have broken one.
bool note_capture(const call_context&, int result, bool refused, bool violation) noexcept;

// A call that stayed long: remembered for those that it held up, and the call on another thread
// that held this one up, if there was one for most of the time.
void note_long_call(const call_context&, std::uint64_t end_ns) noexcept;
bool note_held(const call_context&, std::uint64_t end_ns, unsigned least_rank) noexcept;

// Before a call of a row of type `pressure`: ends the gap after a wait. False: nothing more is
// asked about the call.
bool note_enqueue() noexcept;

std::uint64_t now_ns() noexcept;

// The caller's registers at the wrapper's return, from the wrapper's own frame record:
// __builtin_frame_address(0) makes the compiler keep a frame pointer in that function. `cfa` is
// __builtin_dwarf_cfa(), the caller's stack pointer: aarch64 keeps the record below the locals.
inline unwind::registers caller_of(const void* frame, const void* cfa) noexcept {
  const auto* words = static_cast<const std::uintptr_t*>(frame);
  return {words[1], reinterpret_cast<std::uintptr_t>(cfa), words[0]};
}

// A finding that is no call: an order of work that was opted out of, with its text as label.
void note_audit(const unwind::registers& caller, const char* what) noexcept;

// Callback and last-refused bookkeeping, used by before() and after().
void report_violation(const call_context&, std::uint64_t ns, bool refused) noexcept;
int set_callback(hostwait_callback callback, void* user) noexcept;
int last_refused(hostwait_finding* out) noexcept;

}  // namespace hostwait::entry
