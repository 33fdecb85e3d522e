// SPDX-License-Identifier: Apache-2.0
// Copyright The hostwait authors
// The shim's own state: options of this process, policy of this thread.
// Everything is constant-initialised, so that it works before our constructor has run.
#pragma once

#include <atomic>
#include <cstdint>

#include "options.hpp"
#include "policy.hpp"
#include "ranges.hpp"
#include "record.hpp"

namespace hostwait::state {

// Thread-local, initial-exec: one block, at most 128 bytes (the library's whole TLS budget is 256).
struct thread_block {
  policy::action_set effective;  // the decision per kind, valid for `epoch`
  std::uint32_t epoch;           // 0: never computed
  bool cleanup_registered;
  std::uintptr_t in_call;  // frame address of the wrapper this thread is in, 0 = none
  std::uint64_t allowed;   // calls let through without a record
  std::uint64_t allowed_published;
  policy::frame_stack* frames;  // null until the first push
  ranges::stack* ranges;        // null until the first annotated range
  std::uint64_t refused_id;     // number of this thread's last refusal, 0 = none
  row_id refused_row;
  std::uint8_t refused_verdict;
  std::uint8_t refused_action;
  std::uint64_t refused_bytes;
  // Polling: the handle asked last, how often in a row it was not ready, since when.
  std::uint64_t poll_handle, poll_since_ns;
  std::uint32_t poll_count;
  std::uint8_t capture_mode;  // of cuThreadExchangeStreamCaptureMode
};

// Declared hidden, so that the wrappers' fast path reaches both without the GOT.
extern __thread thread_block tls __attribute__((tls_model("initial-exec"), visibility("hidden")));

// Moves whenever any thread's cached decision may be out of date. Starts at 1.
extern std::atomic<std::uint32_t> policy_epoch __attribute__((visibility("hidden")));

// Options of this process; parsed at first use from HOSTWAIT_OPTIONS. Lock-free: concurrent first
// users parse the same text into the same values and one of them publishes.
extern std::atomic<const options*> published_settings __attribute__((visibility("hidden")));
const options& read_settings() noexcept;
inline const options& settings() noexcept {
  const options* known = published_settings.load(std::memory_order_acquire);
  return __builtin_expect(known != nullptr, 1) ? *known : read_settings();
}
// The one line to print for wrong options, "" if they are fine.
const char* settings_error() noexcept;

// Recomputes this thread's `effective`, after taking over a changed control word.
void refresh(thread_block& t) noexcept;
// Called now and then from the allowed path: looks at the control word.
HOSTWAIT_HOT void look_at_control() noexcept;
// Called on the long way of every call: has the window begun or ended? A clock read where a window
// is set, a load where none is.
HOSTWAIT_HOT void look_at_window() noexcept;
bool paused() noexcept;
// The program's own switch (hostwait_pause); the control word has one of its own.
void set_paused(bool) noexcept;

// Copies the label of the newest frame of this thread, else of the process, that has one.
HOSTWAIT_HOT void copy_label(const thread_block& t, char (&out)[policy::label_bytes]) noexcept;

int push(int action, std::uint32_t kinds, const char* label, bool process) noexcept;
int pop(int token, bool process) noexcept;
std::uint64_t mismatched_pops() noexcept;

// Registers the thread's clean-up (frames back to the pool) once.
void register_thread_cleanup(thread_block& t) noexcept;

// cuDriverGetVersion, 0 before it is known.
int driver_version() noexcept;
void set_driver_version(int) noexcept;
// 10 * major + minor of device 0, 0 before it is known: rules hold where they were measured.
int compute_capability() noexcept;
void set_compute_capability(int) noexcept;

// cudaProfilerStart and Stop, for capture_range=profiler.
void profiler_range(bool on) noexcept;

// Kernel id of the calling thread; a system call.
std::uint32_t thread_id() noexcept;

}  // namespace hostwait::state
