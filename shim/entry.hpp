// SPDX-License-Identifier: Apache-2.0
// Copyright The hostwait authors
// One intercepted call, from the wrapper's entry to its return. The wrappers themselves are
// expanded from calls.def in entry_wrappers.cpp; everything that is the same for all of them is
// here, so that a wrapper is: facts, before(), the driver's function, after().
#pragma once

#include <cstdint>

#include "classify.hpp"
#include "policy.hpp"
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
  policy::before_call now;
  call_facts facts;
  judgement verdict;
  unwind::registers caller;
  record::thread_writer* writer;
  std::uint64_t start_ns;
};

enum class path : std::uint8_t {
  record,   // make the call, then after()
  through,  // make the call, nothing else: nested, or allowed
  refuse,   // return CUDA_ERROR_NOT_PERMITTED
};

path before(call_context&) noexcept;
void after(call_context&, int result) noexcept;

// Rows of type `state`: they are made as they are, then looked at.
void note_state(row_id row, const call_facts&, int result) noexcept;

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
