// SPDX-License-Identifier: Apache-2.0
// Copyright The hostwait authors
// From records that a test builds to what the tool reads and reports. Needs hostwait_record_builder
// and hostwait_report.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "report/report.hpp"
#include "support/catch.hpp"
#include "support/record_builder.hpp"

namespace hostwait::test {

inline record_file parsed(const record_builder& builder, const std::string& name = "a.hwr") {
  read_error error;
  const std::vector<std::byte> bytes = builder.bytes();
  auto record = record_file::parse(bytes, name, error);
  INFO(error.line());
  REQUIRE(record.has_value());
  return std::move(*record);
}

// Native frames are "module+offset".
inline run_report report_of(const std::vector<record_builder>& builders,
                            const std::string& name = "a.hwr") {
  std::vector<record_file> records;
  for (const record_builder& builder : builders) records.push_back(parsed(builder, name));
  return make_report(records, *make_plain_symbolizer());
}

}  // namespace hostwait::test
