// SPDX-License-Identifier: Apache-2.0
// Copyright The hostwait authors
// What to do about a finding: one sentence, and where docs/advice.md shows it.
#pragma once

#include <span>

#include "findings/finding.hpp"

namespace hostwait {

struct advice {
  const char* anchor;    // of docs/advice.md
  const char* sentence;  // no capital at its beginning, no full stop
};

// Never null; by the reason where it says more than the kind.
const advice& advice_for(const finding& of);

std::span<const advice> all_advice();

}  // namespace hostwait
