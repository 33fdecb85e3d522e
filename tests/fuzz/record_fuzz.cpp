// SPDX-License-Identifier: Apache-2.0
// Copyright The hostwait authors
// Any bytes as a record: the reader, the merge and the table must neither crash nor hang.
#include <cstddef>
#include <cstdint>
#include <cstdlib>

#include "report/report.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace hostwait;
  read_error error;
  const auto bytes = std::as_bytes(std::span(data, size));
  auto record = record_file::parse(bytes, "fuzz.hwr", error);
  if (!record) {
    // A refusal is one line with a fault in it.
    if (error.what.empty() || error.line().find('\n') != std::string::npos) std::abort();
    return 0;
  }
  std::vector<record_file> records;
  records.push_back(std::move(*record));
  // Its path is no file: nothing outside the input is looked at.
  const run_report report = make_report(records, *make_plain_symbolizer());
  for (const char c : text_report(report, {.width = 80, .limit = 5, .next_command = true})) {
    if (static_cast<unsigned char>(c) < 0x20 && c != '\n') std::abort();
  }
  return 0;
}
