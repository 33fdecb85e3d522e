// SPDX-License-Identifier: Apache-2.0
// Copyright The hostwait authors
// Findings added up by line, function, call, range, thread or process.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "report.hpp"

namespace hostwait {

struct group {
  std::string name;
  tally sum;
  std::size_t findings = 0;
  std::uint64_t wall_ns = 0;  // of its processes, added up; 0 = not known
};

// Most waited time first. Sums of counts over findings: what one finding counts once (a copy with
// its stream wait) is counted once. Throws nothing; an empty report has no groups.
std::vector<group> group_by(const run_report& report, grouping by);

std::string group_table(const run_report& report, const text_style& style);

const char* grouping_name(grouping by);
// What --by takes: all but `finding`.
const std::map<std::string, grouping>& groupings();

}  // namespace hostwait
