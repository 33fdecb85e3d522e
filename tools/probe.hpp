// SPDX-License-Identifier: Apache-2.0
// Copyright The hostwait authors
// The part of `doctor` that runs in a child of its own: it loads the driver, which may crash.
#pragma once

#include <string>

namespace hostwait {

inline constexpr const char* probe_command = "--probe-environment";

// Prints key=value lines: preloaded, driver, driver_version. Returns the exit status.
int run_probe();

struct probe_result {
  bool ended = false;        // within its time, by itself
  bool preloaded = false;    // the shim was in the process
  std::string driver;        // path of libcuda, "" = not loaded
  std::string driver_error;  // what the loader said
  int driver_version = 0;    // as cuDriverGetVersion says it
};

// Runs the probe with this LD_PRELOAD, for at most ten seconds.
probe_result probe_environment(const std::string& preload);

}  // namespace hostwait
