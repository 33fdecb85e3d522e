// SPDX-License-Identifier: Apache-2.0
// Copyright The hostwait authors
// What every call passes first, and its controls: counters, injected errors, the call sequence.
#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <string>
#include <vector>

#include "hostwait_sim.h"
#include "state.hpp"

#define SIM_CONTROL extern "C" __attribute__((visibility("default")))

namespace hostwait::sim {

call_shard shards[shard_count];
std::atomic<uint32_t> slow_flags{slow_not_initialized};
thread_local call_state call __attribute__((tls_model("initial-exec")));

namespace {

const char* const names[] = {
#define HOSTWAIT_SIM_EXPORT(symbol, base, version, per_thread) #symbol,
#include "exports.def"
#undef HOSTWAIT_SIM_EXPORT
};

struct injection {
  int result = 0;
  unsigned nth = 0;  // 0: every call
  unsigned seen = 0;
};

struct controls {
  std::mutex mutex;
  injection failing[id_count];
  std::vector<id> recorded;
};
controls& c() {
  static controls* const instance = new controls;
  return *instance;
}

int index_of(const char* symbol) {
  for (size_t i = 0; i < id_count; ++i)
    if (symbol && !strcmp(names[i], symbol)) return static_cast<int>(i);
  return -1;
}

bool set_failure(const char* symbol, int result, unsigned nth) {
  int index = index_of(symbol);
  if (index < 0) return false;
  std::lock_guard guard(c().mutex);
  c().failing[index] = {result, nth, 0};
  bool any = std::any_of(std::begin(c().failing), std::end(c().failing),
                         [](const injection& i) { return i.result != 0; });
  if (any)
    slow_flags |= slow_injection;
  else
    slow_flags &= ~slow_injection;
  return true;
}

// CALL=CODE[@NTH],…: a malformed or unknown entry ends the process, since a test that asked for
// an error must not go on without it.
void read_environment() {
  if (const char* speed = getenv("HOSTWAIT_SIM_COPY_SPEED"))
    hostwait_sim_set_copy_speed(strtoull(speed, nullptr, 10));
  const char* text = getenv("HOSTWAIT_SIM_FAIL");
  std::string rest = text ? text : "";
  while (!rest.empty()) {
    size_t comma = rest.find(',');
    std::string entry = rest.substr(0, comma);
    rest = comma == std::string::npos ? "" : rest.substr(comma + 1);
    size_t equals = entry.find('=');
    char* end = nullptr;
    unsigned long nth = 0;
    unsigned long code =
        equals == std::string::npos ? 0 : strtoul(entry.c_str() + equals + 1, &end, 10);
    if (end && *end == '@') nth = strtoul(end + 1, &end, 10);
    if (!end || *end || !code ||
        !set_failure(entry.substr(0, equals).c_str(), static_cast<int>(code),
                     static_cast<unsigned>(nth))) {
      fprintf(stderr, "hostwait simulated driver: HOSTWAIT_SIM_FAIL: bad entry '%s'\n",
              entry.c_str());
      abort();
    }
  }
}

bool usable_before_init(id which) {
  switch (which) {
    case id::cuInit:
    case id::cuDriverGetVersion:
    case id::cuGetErrorName:
    case id::cuGetErrorString:
    case id::cuGetProcAddress:
    case id::cuGetProcAddress_v2:
    case id::cuGetExportTable:
      return true;
    default:
      return false;
  }
}

uint64_t sum(const char* symbol, std::atomic<uint64_t> (call_shard::*counters)[id_count]) {
  int index = index_of(symbol);
  if (index < 0) return UINT64_MAX;
  uint64_t total = 0;
  for (call_shard& shard : shards) total += (shard.*counters)[index].load();
  return total;
}

}  // namespace

void attach_call_state() {
  static std::atomic<unsigned> next{0};
  static std::once_flag once;
  call.shard = &shards[next++ % shard_count];
  std::call_once(once, read_environment);
}

CUresult enter_slow(id which) {
  auto index = static_cast<size_t>(which);
  uint32_t flags = slow_flags;
  if (flags & slow_recording) {
    std::lock_guard guard(c().mutex);
    c().recorded.push_back(which);
  }
  if (flags & slow_injection) {
    std::lock_guard guard(c().mutex);
    injection& i = c().failing[index];
    if (i.result && (++i.seen == i.nth || i.nth == 0)) return static_cast<CUresult>(i.result);
  }
  if (flags & (slow_not_initialized | slow_forked) &&
      (!usable_before_init(which) || (flags & slow_forked && which == id::cuInit)))
    return CUDA_ERROR_NOT_INITIALIZED;
  return call.in_host_function && !usable_before_init(which) ? CUDA_ERROR_NOT_PERMITTED
                                                             : CUDA_SUCCESS;
}

}  // namespace hostwait::sim

using namespace hostwait::sim;

SIM_CONTROL int hostwait_sim_present(void) {
  return 1;
}

SIM_CONTROL uint64_t hostwait_sim_calls(const char* symbol) {
  return sum(symbol, &call_shard::calls);
}

SIM_CONTROL uint64_t hostwait_sim_host_waits(const char* symbol) {
  return sum(symbol, &call_shard::waits);
}

SIM_CONTROL uint64_t hostwait_sim_unsupported_calls(void) {
  uint64_t total = 0;
  for (const char* name : names)
    if (!hostwait_sim_is_simulated(name)) total += hostwait_sim_calls(name);
  return total;
}

SIM_CONTROL void hostwait_sim_reset_counts(void) {
  for (call_shard& shard : shards)
    for (size_t i = 0; i < id_count; ++i) shard.calls[i] = shard.waits[i] = 0;
}

SIM_CONTROL int hostwait_sim_fail(const char* symbol, int result, unsigned nth) {
  return set_failure(symbol, result, nth) ? 0 : -1;
}

SIM_CONTROL void hostwait_sim_record(int on) {
  std::lock_guard guard(c().mutex);
  if (on) c().recorded.clear();
  if (on)
    slow_flags |= slow_recording;
  else
    slow_flags &= ~slow_recording;
}

SIM_CONTROL size_t hostwait_sim_recorded_count(void) {
  std::lock_guard guard(c().mutex);
  return c().recorded.size();
}

SIM_CONTROL const char* hostwait_sim_recorded(size_t index) {
  std::lock_guard guard(c().mutex);
  return index < c().recorded.size() ? names[static_cast<size_t>(c().recorded[index])] : nullptr;
}
