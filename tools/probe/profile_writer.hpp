// SPDX-License-Identifier: Apache-2.0
// Copyright The hostwait authors
// Measured results as a verdict profile, which the shim loads (docs/probe.md).
#pragma once

#include <string>

#include "result.hpp"

namespace hostwait::probe {

std::string to_profile(const report&);

// Lines of a profile for calls that no rule judges yet: what a rule would have to say.
std::string without_rule(const report&);

}  // namespace hostwait::probe
