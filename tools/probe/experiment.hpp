// SPDX-License-Identifier: Apache-2.0
// Copyright The hostwait authors
// The catalogue of experiments: what to prepare, which call to make, where a kernel runs meanwhile.
#pragma once

#include <deque>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "predict.hpp"

namespace hostwait::probe {

class stage;

struct experiment {
  std::string id;                    // group/call/variant, unique
  std::string call;                  // in words
  std::function<void(stage&)> make;  // the call, through stage::measured()
  std::function<void(stage&)> prepare, cleanup;
  // Puts the kernel elsewhere than on one of the four streams; then `busy` has one entry.
  std::function<void(stage&, std::uint64_t ns)> occupy;
  std::vector<stream_kind> busy = {stream_kind::legacy, stream_kind::blocking,
                                   stream_kind::nonblocking, stream_kind::per_thread};
  // A process of its own, with these variables, for each measurement.
  bool fresh = false;
  std::vector<std::pair<std::string, std::string>> environment;
  bool quick = false;
  bool judged = true;       // false: no verdict speaks about it
  bool errors_fit = false;  // an error is an answer (captures), not a lack of support
  bool idle = true;         // false: makes no sense without the kernel
  unsigned devices = 1;     // how many it needs
  bool searches = false;    // finds limits itself: stage::report_limit()
};

class catalogue {
 public:
  experiment& add(std::string id, std::string call, std::function<void(stage&)> make) {
    experiment e;
    e.id = std::move(id);
    e.call = std::move(call);
    e.make = std::move(make);
    all_.push_back(std::move(e));
    return all_.back();
  }
  const std::deque<experiment>& all() const { return all_; }

 private:
  std::deque<experiment> all_;  // add() hands out references
};

void add_waits(catalogue&);
void add_copies(catalogue&);
void add_shaped_copies(catalogue&);  // 2D, 3D, arrays, peers, batches
void add_memsets(catalogue&);
void add_memory(catalogue&);
void add_pools(catalogue&);
void add_mappings(catalogue&);  // virtual memory, interprocess memory
void add_launches(catalogue&);
void add_graphs(catalogue&);
void add_modules(catalogue&);
void add_contexts(catalogue&);
void add_captures(catalogue&);
void add_holders(catalogue&);  // who is held up by whom
void add_limits(catalogue&);

const std::deque<experiment>& experiments();
const experiment* find_experiment(const std::string& id);

}  // namespace hostwait::probe
