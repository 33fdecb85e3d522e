// SPDX-License-Identifier: Apache-2.0
// Copyright The hostwait authors
// The exported table behind include/hostwait/hostwait.h, and the library's start and end.
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "entry.hpp"
#include "options.hpp"
#include "record.hpp"
#include "state.hpp"

namespace {

using namespace hostwait;

int api_push(hostwait_action action, std::uint32_t kinds, const char* label, int process) {
  return state::push(action, kinds, label, process != 0);
}

int api_pop(int token, int process) {
  return state::pop(token, process != 0);
}

int api_set_callback(hostwait_callback callback, void* user) {
  return entry::set_callback(callback, user);
}

void api_step() {
  record::step(false);
}
void api_steady() {
  record::step(true);
}

int api_stats_get(hostwait_stats* out) {
  if (out == nullptr || out->size < sizeof(std::uint32_t)) return HOSTWAIT_INVALID;
  const record::totals sums = record::sum();
  hostwait_stats stats = {};
  stats.calls = sums.calls;
  stats.waited = sums.waited;
  stats.latent = sums.latent;
  stats.refused = sums.refused;
  stats.held = sums.held;
  stats.violations = sums.violations;
  stats.waited_ns = sums.waited_ns;
  stats.allowed = state::tls.allowed;
  stats.mismatched_pops = state::mismatched_pops();
  stats.size = out->size < sizeof stats ? out->size : sizeof stats;
  std::memcpy(out, &stats, stats.size);
  return 0;
}

int api_last_refused(hostwait_finding* out) {
  return entry::last_refused(out);
}

int api_set_paused(int paused) {
  state::set_paused(paused != 0);
  return 0;
}

int api_action_of(std::uint32_t kind) {
  if ((kind & policy::all_bits) != kind || kind == 0 || (kind & (kind - 1)) != 0) {
    return HOSTWAIT_INVALID;
  }
  state::thread_block& t = state::tls;
  const bool known = t.epoch == state::policy_epoch.load(std::memory_order_acquire);
  if (!known) state::refresh(t);
  const unsigned action =
      policy::action_of(t.effective, static_cast<unsigned>(__builtin_ctz(kind)));
  // The next catalogued call opens the record first, whose control word may say otherwise.
  if (!known) t.epoch = 0;
  return static_cast<int>(action);
}

int api_audit(const char* what) {
  if (what == nullptr) return HOSTWAIT_INVALID;
  entry::note_audit(entry::caller_of(__builtin_frame_address(0), __builtin_dwarf_cfa()), what);
  return 0;
}

constexpr hostwait_api_table table = {
    sizeof(hostwait_api_table),
    HOSTWAIT_VERSION_MAJOR * 10000 + HOSTWAIT_VERSION_MINOR * 100 + HOSTWAIT_VERSION_PATCH,
    api_push,
    api_pop,
    api_set_callback,
    api_step,
    api_steady,
    api_stats_get,
    api_last_refused,
    api_set_paused,
    api_action_of,
    api_audit};

__attribute__((constructor)) void start() {
  const int saved = errno;
  record::remember_stderr();
  if (state::settings().help) {
    char text[4096];
    describe_options(text, sizeof text);
    // Asked for by name: written whatever descriptor 2 is.
    if (write(STDERR_FILENO, text, std::strlen(text)) < 0) errno = saved;
  }
  errno = saved;
}

__attribute__((destructor)) void end() {
  const int saved = errno;
  record::seal();
  errno = saved;
}

}  // namespace

extern "C" {
__attribute__((visibility("default"))) extern const hostwait_api_table* const hostwait_api;
const hostwait_api_table* const hostwait_api = &table;
}
