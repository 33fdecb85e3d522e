// SPDX-License-Identifier: Apache-2.0
// Copyright The hostwait authors
// The library's switches in the environment.
#pragma once

#include <hostwait/cai.h>

#include <atomic>

namespace hostwait::cai {

// Bits of what was read; 0 before the first reading.
constexpr unsigned env_read = 1, env_sync_off = 2, env_version_2 = 4;
extern std::atomic<unsigned> env_cached;
unsigned read_environment();

inline unsigned environment() {
  const unsigned bits = env_cached.load(std::memory_order_acquire);
  return __builtin_expect(bits != 0, 1) ? bits : read_environment();
}

// HOSTWAIT_CUDA_ARRAY_INTERFACE_SYNC and the aliases
inline bool env_sync() {
  return !(environment() & env_sync_off);
}
// HOSTWAIT_CUDA_ARRAY_INTERFACE_EXPORT_VERSION
inline int env_export_version() {
  return environment() & env_version_2 ? 2 : 3;
}

// Is the order given by streams and events to be kept under this policy?
inline bool sync_wanted(const hostwait_cai_policy& policy) {
  return policy.sync == HOSTWAIT_CAI_SYNC_ENV ? env_sync() : policy.sync == HOSTWAIT_CAI_SYNC_ON;
}

}  // namespace hostwait::cai
