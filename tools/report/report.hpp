// SPDX-License-Identifier: Apache-2.0
// Copyright The hostwait authors
// A run's findings as text for people and as JSON for programs.
#pragma once

#include <cstddef>
#include <string>

#include "findings/finding.hpp"

namespace hostwait {

struct text_style {
  std::size_t width = 0;      // columns of the terminal; 0 = do not cut
  std::size_t limit = 20;     // findings shown; 0 = all
  bool next_command = false;  // end with the command to type next
};

std::string text_report(const run_report& report, const text_style& style);

// Schema: docs/schemas/report.schema.json. `limit` as above, for findings.
std::string json_report(const run_report& report, std::size_t limit = 0);

// "402 ms", "4.1 ms", "9.8 s".
std::string human_time(std::uint64_t ns);

// "train.py:42 step < at::native::copy_kernel".
std::string where_of(const finding& of);

// Width of the terminal behind a descriptor; 0 where it is none.
std::size_t terminal_width(int descriptor);

}  // namespace hostwait
