// SPDX-License-Identifier: Apache-2.0
// Copyright The hostwait authors
// Text from a record on its way to a terminal: names, labels and paths are a stranger's bytes.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace hostwait {

// Control characters, invalid UTF-8, invisible and direction-changing characters become visible
// escapes (\n, \x1b, \u202e); everything else stays. A backslash is kept.
std::string for_terminal(std::string_view text);

// Columns that the text takes, one for each code point.
std::size_t columns_of(std::string_view text);

// At most `columns` wide, with "…" at the end where something was cut.
std::string cut_to(std::string_view text, std::size_t columns);

}  // namespace hostwait
