// SPDX-License-Identifier: Apache-2.0
// Copyright The hostwait authors
// The process's own numbers, as the public interface gives them.
#pragma once

#include <hostwait/hostwait.h>

#include <stdexcept>

namespace hostwait_test {

inline hostwait_stats stats() {
  hostwait_stats now = {};
  now.size = sizeof now;
  if (hostwait_stats_get(&now) != 0) throw std::runtime_error("no statistics");
  return now;
}

}  // namespace hostwait_test
