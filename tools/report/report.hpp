// SPDX-License-Identifier: Apache-2.0
// Copyright The hostwait authors
// A run's findings as text for people and as JSON for programs.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "findings/finding.hpp"

namespace hostwait {

// What one line of a table stands for: a finding, or everything with the same line, function, ….
enum class grouping : std::uint8_t { finding, line, function, call, range, thread, process };

struct text_style {
  std::size_t width = 0;      // columns of the terminal; 0 = do not cut
  std::size_t limit = 20;     // findings or groups shown; 0 = all
  bool next_command = false;  // end with the command to type next
  bool colour = false;
  bool detail = false;  // a paragraph for each finding, under the table
  grouping by = grouping::finding;
};

std::string text_report(const run_report& report, const text_style& style);

// Schema: docs/schemas/report.schema.json. `limit` as above, for findings and groups.
std::string json_report(const run_report& report, std::size_t limit = 0,
                        grouping by = grouping::finding);

// The findings in the order of the table, those that would only wait on a busier GPU last.
// `limit` as above.
std::vector<const finding*> rows_of(const run_report& report, std::size_t limit);

// The stack of a finding as one line, the user's own frame first: "step < item < cudaMemcpyAsync".
std::string stack_line(const finding& of);

// "402 ms", "4.1 ms", "9.8 s".
std::string human_time(std::uint64_t ns);

// "train.py:42 step < at::native::copy_kernel".
std::string where_of(const finding& of);

// "4.1 %"; "" where one of both is not known.
std::string percent(std::uint64_t part, std::uint64_t of);

// Width of the terminal behind a descriptor; 0 where it is none.
std::size_t terminal_width(int descriptor);

// A terminal that takes colours, and nobody who asked for none (NO_COLOR, TERM=dumb).
bool terminal_colour(int descriptor);

}  // namespace hostwait
