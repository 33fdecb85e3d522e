// SPDX-License-Identifier: Apache-2.0
// Copyright The hostwait authors
// Runs the experiments in worker processes, so that no call can stop or end this one.
#pragma once

#include <functional>
#include <string>

#include "experiment.hpp"
#include "result.hpp"

namespace hostwait::probe {

struct run_options {
  bool quick = false;
  std::string only;  // part of an experiment's id; empty: all
  int device = 0;
  unsigned kernel_ms = 0;  // 0: 30, or 20 when quick
  std::function<void(unsigned done, unsigned of, const std::string& id)> progress;
};

// Throws failure where there is no driver or no device.
report run_experiments(const run_options&);

// What a run with these options measures.
std::vector<const experiment*> chosen(const run_options&);

}  // namespace hostwait::probe
