// SPDX-License-Identifier: Apache-2.0
// Copyright The hostwait authors
// What a report means for a gate.
#pragma once

#include "findings/finding.hpp"

namespace hostwait {

// 0, 2 (config error), 86 or 87. `reason` gets one line unless the result is 0.
int gate_status(const run_report& report, bool require_cuda, std::string& reason);

}  // namespace hostwait
