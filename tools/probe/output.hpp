// SPDX-License-Identifier: Apache-2.0
// Copyright The hostwait authors
// What the command prints.
#pragma once

#include <string>

#include "result.hpp"

namespace hostwait::probe {

std::string to_csv(const report&);
std::string to_text(const report&);
// Wrong verdicts, idle calls over their own cost, and the line that checks read.
std::string to_ending(const report&);

}  // namespace hostwait::probe
