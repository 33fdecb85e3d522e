// SPDX-License-Identifier: Apache-2.0
// Copyright The hostwait authors
// HOSTWAIT_OPTIONS as the tool sees it: checked before a program starts. The keys come from
// shim/options.def; a test holds this check against the shim's own parser.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace hostwait {

struct option_spec {
  const char* key;
  const char* type;  // level, number, choice, text, list, flag
  const char* initial;
  const char* help;
};
std::span<const option_spec> option_specs();

// Null when the value is right, else what to write instead.
std::optional<std::string> wrong_value(const std::string& key, const std::string& value);

// Splits key=value joined by ':', with \: and \\ undone. Throws failure (2) naming the part.
std::vector<std::pair<std::string, std::string>> split_options(const std::string& text);

// Throws failure (2) with one line: option, value, remedy. `source` names where it stood.
void check_option(const std::string& source, const std::string& key, const std::string& value);
void check_options_text(const std::string& text);

// "key=value" with ':' and '\' escaped.
std::string option_text(const std::string& key, const std::string& value);

// "log@copy,explicit": the action's number and the bits of its kinds.
struct level_value {
  std::uint32_t action = 0, kinds = 0;
};
std::optional<level_value> parse_level(const std::string& value, std::string& remedy);

}  // namespace hostwait
