// SPDX-License-Identifier: Apache-2.0
// Copyright The hostwait authors
// Findings as stacks with weights, for flame graphs.
#pragma once

#include <string>
#include <vector>

#include "report.hpp"

namespace hostwait {

struct stack_frame {
  std::string name, file;  // file "" = unknown
  std::uint32_t line = 0;
};

// Outermost first: Python frames, the library's native frames above them, the runtime call; without
// Python the native frames. Frames of the C library and the loader are left out.
std::vector<stack_frame> frames_of(const finding& of);

// One line for each finding that waited: frames joined by ';', a space, the microseconds waited (at
// least 1). Characters that would end a frame become '_'.
std::string folded_report(const run_report& report);

// https://www.speedscope.app/file-format-schema.json: one sampled profile for each process that
// waited, weights in nanoseconds. ASCII.
std::string speedscope_report(const run_report& report);

}  // namespace hostwait
