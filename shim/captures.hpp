// SPDX-License-Identifier: Apache-2.0
// Copyright The hostwait authors
// The register of open stream captures: who began which, where, in what mode. Fixed slots, no lock;
// a slot is written by the thread that begins the capture and read by any.
#pragma once

#include <atomic>
#include <cstdint>

#include "capture_rules.hpp"
#include "record.hpp"

namespace hostwait::captures {

inline constexpr unsigned slots = 64;

// Captures that are open, in the low half; the high half is set while polls are watched. Nonzero:
// a query has to be looked at. Hidden, so that the wrappers reach it without the GOT.
extern std::atomic<std::uint32_t> queries_watched __attribute__((visibility("hidden")));
inline constexpr std::uint32_t polls_watched = 1u << 31;
void watch_polls(bool on) noexcept;

// The key of a stream: the handle; the null stream counts as what it stands for, and a per-thread
// default stream is one per thread.
std::uint64_t key_of(std::uint64_t stream, bool per_thread) noexcept;

bool any_open() noexcept;
// Whether a capture was begun on that stream. Streams that joined one by an event are not known.
bool begun_on(std::uint64_t key) noexcept;

struct beginning {
  std::uint64_t key = 0, stream = 0;
  capture_mode mode = capture_global;
  std::uint32_t tid = 0, site = HOSTWAIT_CAPTURE_NO_SITE;
  std::uint64_t mono_ns = 0;
  char thread[16] = {};
};
// Before the driver's call, so that no other thread's call falls between. Returns the slot for
// withdraw(), or -1 where all are taken: such a capture is counted, but has no name.
int begin(const beginning&) noexcept;
void withdraw(int slot) noexcept;  // the driver's call failed
void end(std::uint64_t key) noexcept;

// The captures that a call can be about, one bit a slot.
struct reach {
  std::uint64_t breaks, may_break, on_stream;
  bool any() const noexcept { return (breaks | may_break) != 0; }
};
// `on_some_capture`: the driver says that the call's stream is captured.
reach reach_of(row_id row, const call_facts& facts, std::uint32_t tid, capture_mode thread_mode,
               bool on_some_capture) noexcept;

// Which captures a call that began at `since_ns` has broken, after the driver said that it has
// broken one. Those that were broken before are left out; `guess` says that the answer is one of
// several. The captures count as broken from now on.
std::uint64_t broken_by(const reach& reached, std::uint64_t since_ns, bool& guess) noexcept;
beginning at(unsigned slot) noexcept;

}  // namespace hostwait::captures
