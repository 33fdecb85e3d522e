// SPDX-License-Identifier: Apache-2.0
// Copyright The hostwait authors
// The simulated driver's way in: cuda.h with all versions, symbol ids, and what each call does
// first (count, injected error, "not initialised").
#pragma once

// With it cuda.h declares every version of a name under its own symbol, so that the compiler
// checks our definitions against the vendor's.
#define __CUDA_API_VERSION_INTERNAL
#include <atomic>
#include <cstddef>
#include <cstdint>

#include "cuda.h"
#include "cudaProfiler.h"

namespace hostwait::sim {

enum class id : uint16_t {
#define HOSTWAIT_SIM_EXPORT(symbol, base, version, per_thread) symbol,
#include "exports.def"
#undef HOSTWAIT_SIM_EXPORT
  count
};
inline constexpr size_t id_count = static_cast<size_t>(id::count);

// Counters are spread over shards, so that benchmark threads do not share a cache line here.
struct alignas(64) call_shard {
  std::atomic<uint64_t> calls[id_count];
  std::atomic<uint64_t> waits[id_count];
};
inline constexpr unsigned shard_count = 8;
extern call_shard shards[shard_count];

// Non-zero: the call takes the slow way (not initialised, forked, injection, recording).
inline constexpr uint32_t slow_not_initialized = 1;
inline constexpr uint32_t slow_forked = 2;
inline constexpr uint32_t slow_injection = 4;
inline constexpr uint32_t slow_recording = 8;
extern std::atomic<uint32_t> slow_flags;

struct call_state {
  call_shard* shard;
  id current;
  bool in_host_function;  // where the driver refuses calls
};
extern thread_local call_state call __attribute__((tls_model("initial-exec")));
void attach_call_state();
CUresult enter_slow(id which);

inline CUresult enter(id which) {
  if (!call.shard) [[unlikely]]
    attach_call_state();
  call.current = which;
  call.shard->calls[static_cast<size_t>(which)].fetch_add(1, std::memory_order_relaxed);
  if (slow_flags.load(std::memory_order_relaxed) | call.in_host_function) [[unlikely]]
    return enter_slow(which);
  return CUDA_SUCCESS;
}

}  // namespace hostwait::sim

// One exported call. In the expression `per_thread` says which default stream handle 0 means.
#define SIM_API_AS(symbol, is_per_thread, parameters, expression)                         \
  extern "C" __attribute__((visibility("default"))) CUresult CUDAAPI symbol parameters {  \
    [[maybe_unused]] constexpr bool per_thread = is_per_thread;                           \
    if (CUresult result = hostwait::sim::enter(hostwait::sim::id::symbol)) return result; \
    return expression;                                                                    \
  }
#define SIM_API(symbol, parameters, expression) SIM_API_AS(symbol, false, parameters, expression)
// With the variant that takes the calling thread's stream for handle 0 (_ptsz, _ptds).
#define SIM_API_PTSZ(symbol, parameters, expression) \
  SIM_API_AS(symbol, false, parameters, expression)  \
  SIM_API_AS(symbol##_ptsz, true, parameters, expression)
#define SIM_API_PTDS(symbol, parameters, expression) \
  SIM_API_AS(symbol, false, parameters, expression)  \
  SIM_API_AS(symbol##_ptds, true, parameters, expression)
