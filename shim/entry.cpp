// SPDX-License-Identifier: Apache-2.0
// Copyright The hostwait authors
// What happens around one driver call.
#include "entry.hpp"

#include <cuda.h>
#include <time.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <cstring>

#include "profile_file.hpp"
#include "python_site.hpp"
#include "ranges.hpp"
#include "resolve.hpp"
#include "sys.hpp"

namespace hostwait::entry {

namespace {

using state::thread_block;
using state::tls;

// Stacks grow downward: an outer wrapper's frame lies above ours. A frame below it was left by
// longjmp or cancellation; one far away belongs to another stack (a fiber). One above may have been
// left, too: only a walk of the stack can tell, and where it cannot the call counts as nested.
bool nested(const thread_block& t, const unwind::registers& caller) noexcept {
  constexpr std::uintptr_t far = 64 << 20;
  if (t.in_call <= caller.sp || t.in_call - caller.sp >= far) return false;
  return unwind::look_for(caller, t.in_call) != unwind::frame_state::gone;
}

// cuDriverGetVersion and the name of the library's file say which driver this is.
// False: cuInit has not run yet (its own wrapper is here under arm=unlisted), ask again later.
bool describe_driver(unsigned copy) noexcept {
  using get_version = CUresult (*)(int*);
  const auto ask =
      reinterpret_cast<get_version>(resolve::helper(resolve::helper_id::driver_version, copy));
  int version = 0;
  if (ask != nullptr) ask(&version);
  state::set_driver_version(version);
  using get_attribute = CUresult (*)(int*, CUdevice_attribute, CUdevice);
  const auto ask_device =
      reinterpret_cast<get_attribute>(resolve::helper(resolve::helper_id::device_attribute, copy));
  int major = 0, minor = 0;
  int answer = CUDA_ERROR_NOT_FOUND;
  if (ask_device != nullptr)
    answer = ask_device(&major, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, 0);
  if (answer == CUDA_SUCCESS)
    answer = ask_device(&minor, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR, 0);
  if (answer == CUDA_SUCCESS) state::set_compute_capability(10 * major + minor);
  char target[256] = {};
  const char* text = "";
  const char* path = resolve::copy_at(copy).path;
  if (path != nullptr) {
    if (readlink(path, target, sizeof target - 1) <= 0)
      std::strncpy(target, path, sizeof target - 1);
    const char* base = std::strstr(target, "libcuda.so.");
    // "libcuda.so.580.159.04"; a plain "libcuda.so.1" says nothing.
    if (base != nullptr && std::strchr(base + 11, '.') != nullptr) text = base + 11;
  }
  record::set_driver(static_cast<std::uint32_t>(version), text);
  return answer != CUDA_ERROR_NOT_INITIALIZED;
}

HOSTWAIT_HOT void update_header(unsigned copy) noexcept {
  static std::atomic<const void*> described{nullptr};
  static std::atomic<std::uint32_t> routes_told{0};
  static std::atomic<bool> blind_told{false};
  const void* now = record::control();
  const bool fresh = described.load(std::memory_order_relaxed) != now;
  if (fresh) {
    const bool complete = describe_driver(copy);
    if (complete) described.store(now, std::memory_order_relaxed);
    if (complete && state::settings_error()[0] != '\0') {
      char line[640];
      std::strcpy(line, state::settings_error());
      std::strcat(line, " (defaults are used)");
      record::say_line(line);
    }
  }
  const std::uint32_t routes = resolve::routes_seen();
  const bool blind = resolve::blind();
  if (!fresh && routes == routes_told.load(std::memory_order_relaxed) &&
      blind == blind_told.load(std::memory_order_relaxed))
    return;
  routes_told.store(routes, std::memory_order_relaxed);
  blind_told.store(blind, std::memory_order_relaxed);
  char why[256];
  const std::size_t n = resolve::describe_blind_spots(why, sizeof why);
  record::set_coverage(routes, blind, why, n);
}

__attribute__((noinline)) HOSTWAIT_HOT record::tally tally_of(const call_context& call,
                                                              bool gap) noexcept {
  site_storage storage;
  record::site_key key = key_of(call, storage);
  key.gap = gap;
  return record::tally_of(call.writer, key);
}

__attribute__((noinline)) void find_and_note(const call_context& call,
                                             const record::observation& seen) noexcept {
  site_storage storage;
  record::note(call.writer, key_of(call, storage), seen);
}

HOSTWAIT_HOT void record_call(call_context& call, record::outcome what, bool violation,
                              std::uint64_t ns) noexcept {
  const record::observation seen{what, violation, ns};
  if (call.at.counters != nullptr) {
    record::note(call.writer, call.at, seen);
  } else {
    find_and_note(call, seen);
  }
}

bool is_wait(hostwait_verdict verdict) noexcept {
  return verdict == HOSTWAIT_VERDICT_STREAM || verdict == HOSTWAIT_VERDICT_LEGACY ||
         verdict == HOSTWAIT_VERDICT_CONTEXT;
}

bool queues_work(unsigned kind) noexcept {
  return kind == HOSTWAIT_KIND_COPY || kind == HOSTWAIT_KIND_ASYNC_COPY ||
         kind == HOSTWAIT_KIND_MEMSET;
}

[[noreturn]] void abort_for(const call_context& call) noexcept {
  char label[policy::label_bytes];
  state::copy_label(tls, label);
  char text[256] = "abort: ";
  std::strcat(text, rows[call.row].symbol);
  std::strcat(text, " would wait for the GPU");
  if (label[0] != '\0') {
    std::strcat(text, "; label ");
    std::strcat(text, label);
  }
  record::say_line(text);
  std::abort();
}

void raise_trap() noexcept {
#if defined(__x86_64__)
  asm volatile("int3");
#else
  // aarch64's brk would be executed again after a handler has returned.
  sys::call(SYS_tgkill, sys::getpid(), sys::gettid(), SIGTRAP);
#endif
}

bool over_own_cost(const call_context& call, std::uint64_t ns) noexcept {
  const options& set = state::settings();
  const row_type type = rows[call.row].type;
  if (type == row_type::pressure || type == row_type::audit)
    return ns > std::uint64_t{set.threshold_us} * 1000;
  return own_cost_known(call.row) &&
         ns > own_cost_ns(call.row, call.facts, set.own_cost_us, set.own_cost_gb_per_s,
                          touches_managed(call.verdict));
}

// A call that waits for nothing by its arguments and stayed long was held up by another thread, or
// by something unknown. What allocation and set-up take by themselves is not known: they count as
// held only where another thread was inside a call that is known to hold others up.
void note_long_stay(call_context& call, std::uint64_t end_ns, policy::after_call& then) noexcept {
  const bool idle = call.own_work_done && then.what == policy::result::waited;
  if (then.what == policy::result::held || idle) {
    note_held(call, end_ns, 1);
  } else if (then.what == policy::result::nothing &&
             call.verdict.verdict == HOSTWAIT_VERDICT_NONE && !own_cost_known(call.row) &&
             end_ns - call.start_ns > std::uint64_t{state::settings().threshold_us} * 1000 &&
             note_held(call, end_ns, record::surely_holds)) {
    then.what = policy::result::held;
  }
  note_long_call(call, end_ns);
}

// A query that keeps answering "not ready" on one handle is a wait that spins.
void note_poll(call_context& call, int result, std::uint64_t end_ns) noexcept {
  constexpr std::uint32_t enough = 16;
  thread_block& t = tls;
  const std::uint64_t handle = call.facts.has_stream ? call.facts.stream + 1 : call.facts.aux;
  if (t.poll_handle != handle) {
    t.poll_handle = handle;
    t.poll_count = 0;
    t.poll_since_ns = call.start_ns;
  }
  if (result == CUDA_ERROR_NOT_READY) {
    ++t.poll_count;
    return;
  }
  const bool polled = t.poll_count >= enough;
  t.poll_handle = 0;
  t.poll_count = 0;
  if (!polled || result != CUDA_SUCCESS) return;
  call.verdict.verdict = HOSTWAIT_VERDICT_STREAM;
  record_call(call, record::outcome::waited, false, end_ns - t.poll_since_ns);
}

}  // namespace

record::site_key key_of(const call_context& call, site_storage& storage) noexcept {
  const options& set = state::settings();
  const unsigned limit = set.stacks;
  record::site_key key;
  state::copy_label(tls, storage.label);
  key.row = call.row;
  key.verdict = call.verdict;
  key.native = storage.frames;
  key.native_depth = limit == 0 ? 0 : unwind::capture(call.caller, storage.frames, limit);
  key.python = set.pystacks == 0 ? 0 : python::record_stack(set.pystacks);
  key.label = storage.label;
  key.range = ranges::current();
  key.in_capture = call.in_capture;
  key.bytes = call.facts.bytes;
  key.stream = call.facts.has_stream ? call.facts.stream : 0;
  return key;
}

void note_audit(const unwind::registers& caller, const char* what) noexcept {
  const options& set = state::settings();
  if (state::paused() || !record::ensure_open()) return;
  std::uintptr_t frames[64];
  record::site_key key;
  key.row = row_cuStreamWaitEvent;  // the call that would have kept the order
  key.verdict = {};
  key.native = frames;
  key.native_depth = set.stacks == 0 ? 0 : unwind::capture(caller, frames, set.stacks);
  key.python = set.pystacks == 0 ? 0 : python::record_stack(set.pystacks);
  key.label = what;
  key.range = ranges::current();
  key.in_capture = false;
  key.audit = true;
  key.bytes = key.stream = 0;
  record::note(record::this_thread(), key, {record::outcome::counted, false, 0});
}

bool note_enqueue() noexcept {
  const options& set = state::settings();
  if (set.gap && record::gap_is_open()) record::gap_ends(now_ns());
  return (set.armed & HOSTWAIT_QUEUE_FULL) != 0;
}

std::uint64_t now_ns() noexcept {
  timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return static_cast<std::uint64_t>(now.tv_sec) * 1000000000u +
         static_cast<std::uint64_t>(now.tv_nsec);
}

path before(call_context& call) noexcept {
  const int saved = errno;
  thread_block& t = tls;
  if (nested(t, call.caller)) {
    errno = saved;
    return path::through;
  }
  const unsigned kind = rows[call.row].kind;
  const bool counted = t.epoch == state::policy_epoch.load(std::memory_order_relaxed) &&
                       policy::action_of(t.effective, kind) == HOSTWAIT_ALLOW;  // by the wrapper
  state::look_at_control();  // these two may move the epoch
  state::look_at_window();
  if (t.epoch != state::policy_epoch.load(std::memory_order_acquire)) {
    // Opened first: a new process takes its default from the control word of its own record.
    record::ensure_open();
    state::refresh(t);
  }
  call.action = static_cast<std::uint8_t>(policy::action_of(t.effective, kind));
  if (call.action == HOSTWAIT_ALLOW) {
    if (!counted) ++t.allowed;
    errno = saved;
    return path::through;
  }
  t.in_call = call.caller.sp;
  if (!record::ensure_open()) {
    call.writer = nullptr;
  } else {
    call.writer = record::this_thread();
    update_header(call.copy);
    if (t.allowed != t.allowed_published) {
      record::count_allowed(call.writer, t.allowed - t.allowed_published);
      t.allowed_published = t.allowed;
    }
  }
  judge(call);
  if (kind != HOSTWAIT_KIND_POLL) t.poll_handle = 0;
  call.now = policy::decide_before(call.action, kind, call.verdict.verdict,
                                   state::settings().refuse_depends);
  if (call.now.refuse) {
    record_call(call, record::outcome::refused, true, 0);
    if (call.captures.breaks != 0) note_capture(call, 0, true, true);
    report_violation(call, 0, true);
    t.in_call = 0;
    if (call.now.abort) abort_for(call);
    errno = saved;
    return path::refuse;
  }
  if (call.now.trap) raise_trap();
  // A call that can wait is recorded in any case: its stack is taken now, for a call that hangs.
  if (call.verdict.verdict != HOSTWAIT_VERDICT_NONE) call.at = tally_of(call, false);
  call.start_ns = now_ns();
  // One wait after another: the gap of the first goes on as that of the second.
  if (state::settings().gap && (queues_work(kind) || is_wait(call.verdict.verdict)))
    record::gap_ends(call.start_ns);
  record::enter(call.writer, call.row, call.at, call.start_ns);
  errno = saved;
  return path::record;
}

namespace {

record::outcome outcome_of(policy::result what) noexcept {
  switch (what) {
    case policy::result::waited:
      return record::outcome::waited;
    case policy::result::latent:
      return record::outcome::latent;
    case policy::result::held:
      return record::outcome::held;
    default:
      return record::outcome::counted;
  }
}

bool gates(unsigned action) noexcept {
  return action == HOSTWAIT_FAIL || action == HOSTWAIT_ERROR || action == HOSTWAIT_ABORT;
}

}  // namespace

void after(call_context& call, int result) noexcept {
  const int saved = errno;
  const std::uint64_t end = now_ns();
  const std::uint64_t ns = end - call.start_ns;
  const unsigned kind = rows[call.row].kind;
  policy::after_call then;
  bool polled = false;
  if (kind == HOSTWAIT_KIND_POLL) {
    polled = (state::settings().armed & HOSTWAIT_POLL) != 0;
  } else {
    then = policy::decide_after(call.action, kind, call.verdict.verdict, over_own_cost(call, ns),
                                false);
  }
  const std::uint64_t long_ns = std::uint64_t{state::settings().own_cost_us} * 1000;
  if (__builtin_expect(ns > long_ns, 0)) note_long_stay(call, end, then);
  record::leave(call.writer);
  if (call.queued.counted && result == CUDA_SUCCESS)
    queues::after(call.row, call.facts, call.verdict.verdict, call.queued);
  // Rare, and only while a capture is open: the driver says that this call has broken it.
  if (__builtin_expect(result != CUDA_SUCCESS, 0) && result_breaks_capture(result) &&
      note_capture(call, result, false, gates(call.action))) {
    if (then.what == policy::result::nothing) then.what = policy::result::counted;
    then.violation |= gates(call.action);
  }
  if (polled) note_poll(call, result, end);
  if (then.what != policy::result::nothing)
    record_call(call, outcome_of(then.what), then.violation, ns);
  if (then.violation) report_violation(call, ns, false);
  if (state::settings().gap && is_wait(call.verdict.verdict))
    record::gap_begins(call.writer, tally_of(call, true), end);
  tls.in_call = 0;
  errno = saved;
}

}  // namespace hostwait::entry
