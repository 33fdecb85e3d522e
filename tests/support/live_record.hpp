// SPDX-License-Identifier: Apache-2.0
// Copyright The hostwait authors
// The live record of the test's own process, read as any reader would.
#pragma once

#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <stdexcept>
#include <string>

#include "record/reader.hpp"

namespace hostwait_test {

// The name alone would do for a folder without old records: process numbers come again. What this
// process has mapped is its own, or that of the parent that forked it.
inline hostwait::record_file live_record() {
  const std::string mine = "-" + std::to_string(getpid()) + "-";
  std::ifstream mappings("/proc/self/maps");
  for (std::string line; std::getline(mappings, line);) {
    const std::string path = line.substr(std::min(line.find('/'), line.size()));
    if (!path.ends_with(HOSTWAIT_RECORD_SUFFIX) ||
        path.find(mine, path.rfind('/')) == std::string::npos)
      continue;
    hostwait::read_error error;
    auto record = hostwait::record_file::load(path, error);
    if (record.has_value()) return *record;
    throw std::runtime_error(error.line());
  }
  throw std::runtime_error("no record of this process");
}

// Calls run(counters, site) for each entry that is in use.
template <class Run>
void each_counter(const hostwait::record_file& record, Run run) {
  record.for_each(HOSTWAIT_SECTION_COUNTERS, [&](std::uint32_t i) {
    const hostwait_record_counters counters = record.counters(i);
    if (counters.site != HOSTWAIT_COUNTERS_FREE) run(counters, record.site(counters.site));
  });
}

}  // namespace hostwait_test
