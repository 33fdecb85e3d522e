// SPDX-License-Identifier: Apache-2.0
// Copyright The hostwait authors
// State of the process and of the calling thread.
#include "state.hpp"

#include <sched.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>

#include "captures.hpp"
#include "profile_file.hpp"
#include "queues.hpp"
#include "resolve.hpp"

extern "C" int __cxa_thread_atexit_impl(void (*)(void*), void*, void*);
extern "C" __attribute__((visibility("hidden"))) void* __dso_handle;

namespace hostwait::state {

__thread thread_block tls __attribute__((tls_model("initial-exec")));
static_assert(sizeof(thread_block) <= 128);

std::atomic<std::uint32_t> policy_epoch{1};
std::atomic<const options*> published_settings{nullptr};

namespace {

std::atomic<bool> settings_begun{false};
options the_settings;
char the_error[512];
constexpr options built_in;

std::atomic<policy::action_set> default_actions{policy::all_log};
// Two switches, each with its own hand: recording goes on while neither is on.
std::atomic<bool> paused_inside{false}, paused_outside{false};
std::atomic<bool> outside_window{false};
std::atomic<bool> outside_profiler_range{false};
std::atomic<std::uint32_t> control_seen{0};

// Process-wide frames. Writers hold `process_lock`; readers use the two published words and, for
// the label, a version that is odd while a writer is at work.
std::atomic<bool> process_lock{false};
std::atomic<std::uint32_t> process_version{0};
std::atomic<policy::action_set> process_actions{policy::names_nothing};
policy::frame_stack process_frames;

std::atomic<int> the_driver_version{0}, the_compute_capability{0};
std::atomic<int> next_token{1};
std::atomic<std::uint64_t> wrong_pops{0};

void changed() noexcept {
  policy_epoch.fetch_add(1, std::memory_order_release);
}

void release_frames(void*) noexcept {
  thread_block& t = tls;
  if (t.frames != nullptr) munmap(t.frames, sizeof(policy::frame_stack));
  if (t.ranges != nullptr) munmap(t.ranges, sizeof(ranges::stack));
  t.frames = nullptr;
  t.ranges = nullptr;
  t.epoch = 0;
  t.cleanup_registered = false;
}

bool has_window(const options& set) noexcept {
  return (set.window_begin_ms | set.window_end_ms) != 0;
}

bool excluded_by_name() noexcept {
  const options& set = settings();
  if (set.threads[0] == '\0') return false;
  char name[17] = {};
  prctl(PR_GET_NAME, name, 0, 0, 0);
  return policy::matches_any(set.threads, name);
}

// A writer that cannot have the lock in a second has met itself in a signal handler.
bool lock_process_frames() noexcept {
  for (int i = 0; i < 100000; ++i) {
    if (!process_lock.exchange(true, std::memory_order_acquire)) return true;
    sched_yield();
  }
  return false;
}

int change_process_frames(bool push, policy::action_set actions, int token,
                          const char* label) noexcept {
  if (!lock_process_frames()) return HOSTWAIT_NO_ROOM;
  process_version.fetch_add(1, std::memory_order_acq_rel);
  const int result = push ? process_frames.push(actions, token, label) : process_frames.pop(token);
  process_actions.store(process_frames.over(policy::names_nothing), std::memory_order_relaxed);
  process_version.fetch_add(1, std::memory_order_acq_rel);
  process_lock.store(false, std::memory_order_release);
  changed();
  return result;
}

}  // namespace

const options& read_settings() noexcept {
  bool begun = false;
  if (settings_begun.compare_exchange_strong(begun, true)) {
    if (!parse_options(getenv("HOSTWAIT_OPTIONS"), the_settings, the_error, sizeof the_error))
      the_settings = built_in;
    if (the_settings.profile[0] != '\0')
      load_profile(the_settings.profile, the_error, sizeof the_error);
    default_actions.store(the_settings.level, std::memory_order_relaxed);
    outside_profiler_range.store(the_settings.capture_range_profiler, std::memory_order_relaxed);
    outside_window.store(has_window(the_settings), std::memory_order_relaxed);
    resolve::configure({the_settings.link_route, the_settings.strip_deepbind});
    record::configure({the_settings.output[0] != '\0' ? the_settings.output : nullptr,
                       the_settings.max_sites, getenv("HOSTWAIT_OPTIONS"), the_error[0] != '\0'});
    captures::watch_polls((the_settings.armed & HOSTWAIT_POLL) != 0);
    published_settings.store(&the_settings, std::memory_order_release);
    changed();
    return the_settings;
  }
  // Another thread reads them, which takes microseconds; or this is a signal handler on top of it.
  for (int i = 0; i < 10000; ++i) {
    if (published_settings.load(std::memory_order_acquire) != nullptr) return the_settings;
    sched_yield();
  }
  return built_in;
}

const char* settings_error() noexcept {
  settings();
  return the_error;
}

void refresh(thread_block& t) noexcept {
  look_at_control();
  look_at_window();
  const std::uint32_t epoch = policy_epoch.load(std::memory_order_acquire);
  if (paused()) {
    // Without an epoch the next call looks again, so that it is the first one recorded.
    t.effective = policy::all_allow;
    t.epoch = 0;
    queues::look_at(t.effective);
    return;
  }
  policy::action_set set = default_actions.load(std::memory_order_relaxed);
  // Outside the named ranges the level is the built-in one.
  const char* limits = settings().range;
  if (limits[0] != '\0' && !ranges::inside(limits)) set = policy::all_log;
  const policy::action_set process = process_actions.load(std::memory_order_relaxed);
  if (process != policy::names_nothing && !excluded_by_name()) set = policy::lay_over(set, process);
  if (t.frames != nullptr) set = t.frames->over(set);
  t.effective = set;
  t.epoch = epoch;
  queues::look_at(set);
}

void look_at_control() noexcept {
  const hostwait_record_control* words = record::control();
  if (words == nullptr) return;
  const std::uint32_t generation = __atomic_load_n(&words->generation, __ATOMIC_ACQUIRE);
  // The plain load first: this is on the path of every recorded call.
  if (control_seen.load(std::memory_order_relaxed) == generation ||
      control_seen.exchange(generation, std::memory_order_acq_rel) == generation)
    return;
  policy::action_set set = default_actions.load(std::memory_order_relaxed);
  const std::uint64_t given = __atomic_load_n(&words->actions, __ATOMIC_RELAXED);
  for (unsigned i = 0; i < policy::kind_count; ++i) {
    const unsigned action = static_cast<unsigned>(given >> (4 * i)) & 15;
    if (action == 0 || action > HOSTWAIT_TRAP + 1) continue;
    set = policy::lay_over(set, policy::fill(1u << i, action - 1, policy::unnamed));
  }
  default_actions.store(set, std::memory_order_relaxed);
  paused_outside.store(__atomic_load_n(&words->paused, __ATOMIC_RELAXED) == 1,
                       std::memory_order_relaxed);
  changed();
}

void look_at_window() noexcept {
  const options& set = settings();
  if (__builtin_expect(!has_window(set), 1)) return;
  timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);  // no system call: the vDSO
  const std::uint64_t ms = static_cast<std::uint64_t>(now.tv_sec) * 1000 +
                           static_cast<std::uint64_t>(now.tv_nsec) / 1000000;
  const bool outside =
      ms < set.window_begin_ms || (set.window_end_ms != 0 && ms >= set.window_end_ms);
  if (outside_window.load(std::memory_order_relaxed) != outside &&
      outside_window.exchange(outside, std::memory_order_acq_rel) != outside)
    changed();
}

bool paused() noexcept {
  return paused_inside.load(std::memory_order_relaxed) ||
         paused_outside.load(std::memory_order_relaxed) ||
         outside_profiler_range.load(std::memory_order_relaxed) ||
         outside_window.load(std::memory_order_relaxed);
}

void set_paused(bool value) noexcept {
  paused_inside.store(value, std::memory_order_relaxed);
  changed();
}

void profiler_range(bool on) noexcept {
  if (!settings().capture_range_profiler) return;
  outside_profiler_range.store(!on, std::memory_order_relaxed);
  changed();
}

void copy_label(const thread_block& t, char (&out)[policy::label_bytes]) noexcept {
  out[0] = '\0';
  if (t.frames != nullptr) std::memcpy(out, t.frames->label(), 1 + std::strlen(t.frames->label()));
  if (out[0] != '\0') return;
  const std::uint32_t version = process_version.load(std::memory_order_acquire);
  if (process_frames.depth == 0 || (version & 1) != 0) return;
  std::strncpy(out, process_frames.label(), policy::label_bytes - 1);
  out[policy::label_bytes - 1] = '\0';
  std::atomic_thread_fence(std::memory_order_acquire);
  if (process_version.load(std::memory_order_relaxed) != version) out[0] = '\0';
}

int push(int action, std::uint32_t kinds, const char* label, bool process) noexcept {
  int error = 0;
  const policy::action_set actions = policy::make_frame(action, kinds, settings().armed, error);
  if (error != 0) return error;
  int token = next_token.fetch_add(1, std::memory_order_relaxed) & 0x7fffffff;
  if (token == 0) token = next_token.fetch_add(1, std::memory_order_relaxed) & 0x7fffffff;
  if (process) return change_process_frames(true, actions, token, label);
  thread_block& t = tls;
  if (t.frames == nullptr) {
    void* memory = mmap(nullptr, sizeof(policy::frame_stack), PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) return HOSTWAIT_NO_ROOM;
    t.frames = static_cast<policy::frame_stack*>(memory);  // zero pages are an empty stack
    register_thread_cleanup(t);
  }
  const int result = t.frames->push(actions, token, label);
  if (result > 0 && t.epoch != 0 && !paused()) {
    t.effective = policy::lay_over(t.effective, actions);
    queues::look_at(t.effective);
  } else {
    t.epoch = 0;
  }
  return result;
}

int pop(int token, bool process) noexcept {
  int result = HOSTWAIT_INVALID;
  if (process) {
    result = change_process_frames(false, policy::names_nothing, token, nullptr);
  } else if (tls.frames != nullptr) {
    result = tls.frames->pop(token);
    if (result == 0) tls.epoch = 0;
  }
  if (result == HOSTWAIT_INVALID) {
    wrong_pops.fetch_add(1, std::memory_order_relaxed);
    record::count_mismatched_pop();
  }
  return result;
}

std::uint64_t mismatched_pops() noexcept {
  return wrong_pops.load(std::memory_order_relaxed);
}

void register_thread_cleanup(thread_block& t) noexcept {
  if (t.cleanup_registered) return;
  t.cleanup_registered = __cxa_thread_atexit_impl(release_frames, nullptr, &__dso_handle) == 0;
}

int compute_capability() noexcept {
  return the_compute_capability.load(std::memory_order_relaxed);
}

void set_compute_capability(int value) noexcept {
  the_compute_capability.store(value, std::memory_order_relaxed);
}

int driver_version() noexcept {
  return the_driver_version.load(std::memory_order_relaxed);
}

void set_driver_version(int version) noexcept {
  the_driver_version.store(version, std::memory_order_relaxed);
}

std::uint32_t thread_id() noexcept {
  return static_cast<std::uint32_t>(syscall(SYS_gettid));
}

}  // namespace hostwait::state
