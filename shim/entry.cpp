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

using attribute_query = CUresult (*)(unsigned, CUpointer_attribute*, void**, CUdeviceptr);

// The plural form: the singular one reports an error on pageable memory.
hostwait_memory memory_kind(unsigned copy, const operand& end, bool& sync_memops) noexcept {
  if (end.as == declared::array) return HOSTWAIT_MEMORY_ARRAY;
  if (end.address == nullptr) return HOSTWAIT_MEMORY_UNKNOWN;
  const auto ask = reinterpret_cast<attribute_query>(
      resolve::helper(resolve::helper_id::pointer_attributes, copy));
  if (ask == nullptr) return HOSTWAIT_MEMORY_UNKNOWN;
  unsigned type = 0;
  unsigned managed = 0, synchronous = 0;
  CUmemoryPool pool = nullptr;
  CUpointer_attribute names[] = {CU_POINTER_ATTRIBUTE_MEMORY_TYPE, CU_POINTER_ATTRIBUTE_IS_MANAGED,
                                 CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE,
                                 CU_POINTER_ATTRIBUTE_SYNC_MEMOPS};
  void* values[] = {&type, &managed, &pool, &synchronous};
  if (ask(4, names, values, reinterpret_cast<CUdeviceptr>(end.address)) != CUDA_SUCCESS)
    return HOSTWAIT_MEMORY_UNKNOWN;
  if ((synchronous & 0xff) != 0) sync_memops = true;
  if ((managed & 0xff) != 0) return HOSTWAIT_MEMORY_MANAGED;
  switch (type) {
    case 0:
      return HOSTWAIT_MEMORY_PAGEABLE;
    case CU_MEMORYTYPE_HOST:
      return HOSTWAIT_MEMORY_PINNED;
    case CU_MEMORYTYPE_ARRAY:
      return HOSTWAIT_MEMORY_ARRAY;
    default:
      return pool != nullptr ? HOSTWAIT_MEMORY_POOL : HOSTWAIT_MEMORY_DEVICE;
  }
}

// What an address was allocated or registered with; 0 where the driver does not know.
std::uint64_t range_bytes(unsigned copy, const void* address) noexcept {
  const auto ask = reinterpret_cast<attribute_query>(
      resolve::helper(resolve::helper_id::pointer_attributes, copy));
  std::size_t bytes = 0;
  CUpointer_attribute names[] = {CU_POINTER_ATTRIBUTE_RANGE_SIZE};
  void* values[] = {&bytes};
  if (ask == nullptr || address == nullptr ||
      ask(1, names, values, reinterpret_cast<CUdeviceptr>(address)) != CUDA_SUCCESS)
    return 0;
  return bytes;
}

// The register knows the origin streams of open captures. A stream that joined one by an event is
// found by asking, which captures survive (measured), and only while some capture is open.
bool stream_captures(unsigned copy, const call_facts& facts) noexcept {
  const std::uint64_t handle = state::capture_key(facts.stream, facts.per_thread);
  if (state::capturing(handle)) return true;
  if (facts.stream <= 1 && !facts.per_thread) return false;  // the legacy stream cannot
  using query = CUresult (*)(CUstream, CUstreamCaptureStatus*);
  const auto ask =
      reinterpret_cast<query>(resolve::helper(resolve::helper_id::stream_is_capturing, copy));
  if (ask == nullptr) return false;
  const std::uint64_t named = facts.stream == 0 ? 2 : facts.stream;
  CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_NONE;
  return ask(reinterpret_cast<CUstream>(named), &status) == CUDA_SUCCESS &&
         status != CU_STREAM_CAPTURE_STATUS_NONE;
}

bool launch_blocking() noexcept {
  static std::atomic<int> known{-1};
  int value = known.load(std::memory_order_relaxed);
  if (value < 0) {
    const char* text = getenv("CUDA_LAUNCH_BLOCKING");
    value = text != nullptr && text[0] == '1';
    known.store(value, std::memory_order_relaxed);
  }
  return value == 1;
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

void update_header(unsigned copy) noexcept {
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

void judge(call_context& call) noexcept {
  surroundings around;
  around.capture_open = state::capture_open();
  if (around.capture_open && call.facts.has_stream)
    around.capture_on_stream = stream_captures(call.copy, call.facts);
  around.launch_blocking = launch_blocking();
  around.driver_version = state::driver_version();
  around.compute_capability = state::compute_capability();
  call.in_capture = around.capture_on_stream;
  const pointer_needs needs = needs_of(call.row, call.facts);
  const hostwait_memory source = needs.source
                                     ? memory_kind(call.copy, call.facts.source, around.sync_memops)
                                     : HOSTWAIT_MEMORY_UNKNOWN;
  const hostwait_memory destination =
      needs.destination ? memory_kind(call.copy, call.facts.destination, around.sync_memops)
                        : HOSTWAIT_MEMORY_UNKNOWN;
  call.verdict = classify(call.row, call.facts, source, destination, around);
  if (const verdict_profile* measured = loaded_profile())
    profile_override(*measured, call.row, call.facts, source, destination, around, call.verdict);
  // How long unpinning takes by itself depends on a size that only the driver knows, and only
  // before the call.
  if (rows[call.row].kind == HOSTWAIT_KIND_HOST_FREE && call.facts.bytes == 0)
    call.facts.bytes = range_bytes(call.copy, call.facts.destination.address);
}

void record_call(call_context& call, record::outcome what, bool violation,
                 std::uint64_t ns) noexcept {
  const options& set = state::settings();
  std::uintptr_t frames[64];
  const unsigned limit = set.stacks;
  record::site_key key;
  char label[policy::label_bytes];
  state::copy_label(tls, label);
  key.row = call.row;
  key.verdict = call.verdict;
  key.native = frames;
  key.native_depth = limit == 0 ? 0 : unwind::capture(call.caller, frames, limit);
  key.python = set.pystacks == 0 ? 0 : python::record_stack(set.pystacks);
  key.label = label;
  key.range = ranges::current();
  key.in_capture = call.in_capture;
  key.bytes = call.facts.bytes;
  key.stream = call.facts.has_stream ? call.facts.stream : 0;
  record::note(call.writer, key, {what, violation, ns});
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
    report_violation(call, 0, true);
    t.in_call = 0;
    if (call.now.abort) abort_for(call);
    errno = saved;
    return path::refuse;
  }
  if (call.now.trap) raise_trap();
  call.start_ns = now_ns();
  record::enter(call.writer, call.row, call.start_ns);
  errno = saved;
  return path::record;
}

void after(call_context& call, int result) noexcept {
  const int saved = errno;
  const std::uint64_t end = now_ns();
  const std::uint64_t ns = end - call.start_ns;
  record::leave(call.writer);
  const unsigned kind = rows[call.row].kind;
  if (kind == HOSTWAIT_KIND_POLL) {
    note_poll(call, result, end);
  } else {
    const bool over = over_own_cost(call, ns);
    const policy::after_call then =
        policy::decide_after(call.action, kind, call.verdict.verdict, over, false);
    switch (then.what) {
      case policy::result::nothing:
        break;
      case policy::result::counted:
        record_call(call, record::outcome::counted, then.violation, ns);
        break;
      case policy::result::waited:
        record_call(call, record::outcome::waited, then.violation, ns);
        break;
      case policy::result::latent:
        record_call(call, record::outcome::latent, then.violation, ns);
        break;
      case policy::result::held:
        record_call(call, record::outcome::held, false, ns);
        break;
      case policy::result::refused:
        break;  // not made: before() has told it
    }
    if (then.violation) report_violation(call, ns, false);
  }
  tls.in_call = 0;
  errno = saved;
}

}  // namespace hostwait::entry
