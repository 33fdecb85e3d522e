// SPDX-License-Identifier: Apache-2.0
// Copyright The hostwait authors
#pragma once

#include <time.h>

#include <cstdint>

namespace hostwait {

// CLOCK_MONOTONIC, the clock of records.
inline std::uint64_t mono_ns() {
  timespec now{};
  ::clock_gettime(CLOCK_MONOTONIC, &now);
  return static_cast<std::uint64_t>(now.tv_sec) * 1000000000u +
         static_cast<std::uint64_t>(now.tv_nsec);
}

}  // namespace hostwait
