// SPDX-License-Identifier: Apache-2.0
// Copyright The hostwait authors
// The verdict: before the call, from its facts, which work would it wait for? Pure functions, no
// input or output, no CUDA call, so that every measured row can be tested without a driver.
#pragma once

#include "facts.hpp"
#include "row.hpp"

namespace hostwait {

struct judgement {
  hostwait_verdict verdict = HOSTWAIT_VERDICT_NONE;
  hostwait_reason reason = HOSTWAIT_REASON_NONE;
  hostwait_direction direction = HOSTWAIT_DIRECTION_NONE;
  hostwait_memory source = HOSTWAIT_MEMORY_UNKNOWN;
  hostwait_memory destination = HOSTWAIT_MEMORY_UNKNOWN;
};

// What the process knows besides the arguments.
struct surroundings {
  bool capture_on_stream = false;  // the call's stream is known to be capturing
  bool capture_open = false;       // some capture is open in the process
  bool launch_blocking = false;    // CUDA_LAUNCH_BLOCKING=1
  int driver_version = 0;          // cuDriverGetVersion, 0 = unknown
};

// Which ends of the call classify() wants to know the memory kind of; each costs one pointer
// query. Nothing is asked where the verdict does not need it.
struct pointer_needs {
  bool source = false, destination = false;
};
pointer_needs needs_of(row_id row, const call_facts& facts) noexcept;

judgement classify(row_id row, const call_facts& facts, hostwait_memory source,
                   hostwait_memory destination, const surroundings& now) noexcept;

}  // namespace hostwait
