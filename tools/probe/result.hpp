// SPDX-License-Identifier: Apache-2.0
// Copyright The hostwait authors
// One measured call, as it travels from a worker to its parent and into the outputs.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "classify.hpp"
#include "predict.hpp"

namespace hostwait::probe {

enum class outcome : unsigned char {
  measured,
  unsupported,  // the driver or this GPU does not do it: `note` says why
  hung,         // the worker had to be ended
  crashed,
  skipped,  // no time was left
};

enum class agreement : unsigned char {
  yes,
  no,
  depends,
  unjudged,  // no verdict speaks about it: who holds up whom, exotic streams, errors
};

struct result {
  std::string id;      // group/call/variant
  std::string call;    // in words
  std::string symbol;  // the driver's function
  bool in_table = false;
  stream_kind busy = stream_kind::none;
  stream_kind own = stream_kind::none;  // the call's stream, or its event's
  outcome what = outcome::measured;
  std::string note;      // why not, or what the measurement says beside yes and no
  std::string returned;  // name of an error that the call returned and was allowed to
  std::uint64_t ns = 0, idle_ns = 0, idle_max_ns = 0, spin_ns = 0, own_cost_ns = 0;
  bool own_cost_known = false;
  bool blocked = false;
  bool late = false;  // the call came too late for a clear answer: to be measured again
  agreement agree = agreement::unjudged;
  judgement verdict;
  // What the verdict was made from, so that stored results can be judged again.
  call_facts facts;
  surroundings around;
  hostwait_memory source = HOSTWAIT_MEMORY_UNKNOWN, destination = HOSTWAIT_MEMORY_UNKNOWN;
  bool judged = true;
};

// A number found by search: sizes, depths.
struct limit {
  std::string id, what, unit;
  std::uint64_t value = 0;
  std::string note;  // not empty: not found, and why
};

struct report {
  std::string device, driver_path, mode;
  int compute_capability = 0, driver_version = 0, devices = 0;
  bool simulated = false;
  double seconds = 0;
  std::vector<result> rows;
  std::vector<limit> limits;
};

struct summary {
  unsigned experiments = 0, agree = 0, depend = 0, wrong = 0;
  unsigned unsupported = 0, failed = 0, skipped = 0;
};
summary summarize(const report&);

// Sets `agree` from verdict and measurement.
void compare(result&);
// Verdict and agreement by today's rules, from the stored facts.
void judge_again(result&);

const char* name_of(stream_kind);
const char* name_of(outcome);
const char* name_of(agreement);
const char* name_of(hostwait_verdict);
const char* name_of(hostwait_reason);
const char* name_of(hostwait_memory);
const char* name_of(hostwait_direction);
bool stream_named(const std::string& name, stream_kind& out);

// One JSON object, one line.
std::string to_line(const result&);
std::string to_line(const limit&);
// Which of the two a line holds; neither: false.
bool from_line(const std::string& line, result&, bool& is_limit, limit&);

std::string to_json(const report&);
bool from_json(const std::string& text, report&, std::string& why);

}  // namespace hostwait::probe
