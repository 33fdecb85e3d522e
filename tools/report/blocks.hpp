// SPDX-License-Identifier: Apache-2.0
// Copyright The hostwait authors
// Parts of the text report that stand under the table, and colours.
#pragma once

#include <string>
#include <vector>

#include "report.hpp"

namespace hostwait {

enum class paint : std::uint8_t { plain, bold, dim, red };

// Colours text that ends in at most one line break, which stays outside; `on` false: unchanged.
std::string painted(bool on, paint how, const std::string& text);

// One line for each piece of advice that the rows call for.
std::string advice_block(const std::vector<const finding*>& rows, const text_style& style);

// One paragraph for each row: cost, threads, stack, advice with its anchor.
std::string details(const std::vector<const finding*>& rows, const text_style& style);

// Broken captures: two lines each, both threads and both places.
std::string captures_block(const run_report& report, const text_style& style);

}  // namespace hostwait
