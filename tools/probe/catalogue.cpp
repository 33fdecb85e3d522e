// SPDX-License-Identifier: Apache-2.0
// Copyright The hostwait authors
#include <algorithm>

#include "experiment.hpp"

namespace hostwait::probe {

const std::deque<experiment>& experiments() {
  static const catalogue all = [] {
    catalogue c;
    add_waits(c);
    add_copies(c);
    add_shaped_copies(c);
    add_memsets(c);
    add_memory(c);
    add_pools(c);
    add_mappings(c);
    add_launches(c);
    add_graphs(c);
    add_captures(c);
    add_contexts(c);
    add_modules(c);
    add_holders(c);
    add_limits(c);
    return c;
  }();
  return all.all();
}

const experiment* find_experiment(const std::string& id) {
  const auto& all = experiments();
  const auto at =
      std::find_if(all.begin(), all.end(), [&](const experiment& e) { return e.id == id; });
  return at == all.end() ? nullptr : &*at;
}

}  // namespace hostwait::probe
