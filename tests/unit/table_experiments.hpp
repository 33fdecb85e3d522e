// SPDX-License-Identifier: Apache-2.0
// Copyright The hostwait authors
// The measured table as calls with arguments, so that the rules can be held against it.
#pragma once

#include "roles.hpp"

#include <functional>
#include <set>
#include <string>
#include <vector>

#include "classify.hpp"
#include "probe/predict.hpp"

namespace hostwait::experiments {

// One line of the table: a 30 ms kernel ran on `busy`; was the host stopped in `call`?
struct experiment {
  std::string call, busy;
  double milliseconds = 0;
  bool blocked = false;
};
std::vector<experiment> read(const std::string& csv_path);

// One driver call behind an experiment's label. `event_stream` is where the event that it waits
// for was recorded.
struct step {
  row_id row = row_count;
  call_facts facts;
  std::uint64_t event_stream = 0;
};

// The driver calls of an experiment, in order. Calls that stand in never.def and runtime calls
// that make none at all give no step. False: the label is not known.
bool steps_of(const experiment&, std::vector<step>&);

// The kind of memory at one of the addresses that steps_of uses.
hostwait_memory memory_at(const void* address);

using judge = std::function<judgement(row_id, const call_facts&, hostwait_memory source,
                                      hostwait_memory destination, const surroundings&)>;

using probe::prediction;

// What the verdicts say about the host in this experiment. Memory kinds are handed over only
// where needs_of() asks for them.
prediction predict(const experiment&, const std::vector<step>&, const judge&);

struct tally {
  unsigned experiments = 0, agree = 0, depend = 0, wrong = 0;
  std::vector<std::string> complaints;
  std::set<row_id> rows;  // exercised
  std::set<rule_id> rules;
};
tally run(const std::vector<experiment>&, const judge&);

}  // namespace hostwait::experiments
