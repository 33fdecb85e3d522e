// SPDX-License-Identifier: Apache-2.0
// Copyright The hostwait authors
// The check of option values.
#include "check.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <map>

#include "failure.hpp"
#include "hostwait/hostwait.h"
#include "record/reader.hpp"

namespace hostwait {

namespace {

constexpr option_spec specs[] = {
#define HW_OPTION(key, type, initial, help) {#key, #type, initial, help},
#include "../../shim/options.def"
#undef HW_OPTION
};

constexpr std::array<const char*, 6> action_names = {"allow", "log",   "fail",
                                                     "error", "abort", "trap"};
constexpr std::uint32_t armable = HOSTWAIT_QUEUE_FULL | HOSTWAIT_POLL | HOSTWAIT_UNLISTED;

std::vector<std::string> split(const std::string& text, char separator) {
  std::vector<std::string> parts(1);
  for (const char c : text) {
    if (c == separator) {
      parts.emplace_back();
    } else {
      parts.back() += c;
    }
  }
  return parts;
}

std::optional<std::uint32_t> kinds_named(const std::string& name) {
  if (name == "explicit") return HOSTWAIT_EXPLICIT;
  if (name == "sync") return HOSTWAIT_SYNC;
  if (name == "all") return HOSTWAIT_ALL;
  for (std::uint32_t kind = 0; kind < HOSTWAIT_KIND_COUNT; ++kind) {
    if (name == kind_name(kind)) return 1u << kind;
  }
  return std::nullopt;
}

std::optional<std::uint32_t> parse_kinds(const std::string& list) {
  std::uint32_t kinds = 0;
  for (const std::string& name : split(list, ',')) {
    const std::optional<std::uint32_t> bits = kinds_named(name);
    if (!bits) return std::nullopt;
    kinds |= *bits;
  }
  return kinds;
}

bool is_number(const std::string& text, unsigned long least, unsigned long most) {
  if (text.empty() || text.size() > 9 || text.find_first_not_of("0123456789") != std::string::npos)
    return false;
  const unsigned long n = std::stoul(text);
  return n >= least && n <= most;
}

bool is_window(const std::string& value) {
  const std::vector<std::string> parts = split(value, ',');
  if (parts.size() != 2) return false;
  for (const std::string& part : parts) {
    if (part.empty() || part.size() > 15 ||
        part.find_first_not_of("0123456789") != std::string::npos)
      return false;
  }
  const std::uint64_t end = std::stoull(parts[1]);
  return end == 0 || end > std::stoull(parts[0]);
}

struct bounds {
  unsigned long least, most;
};
const std::map<std::string, bounds> numbers = {{"threshold_us", {0, 100000000}},
                                               {"stacks", {0, 64}},
                                               {"pystacks", {0, 64}},
                                               {"max_sites", {1, 10000000}}};
const std::map<std::string, std::array<const char*, 2>> choices = {
    {"routes", {"all", "nolink"}},
    {"deepbind", {"strip", "keep"}},
    {"depends", {"allow", "refuse"}},
    {"capture_range", {"all", "profiler"}}};
const std::map<std::string, std::size_t> longest = {
    {"output", 4095}, {"range", 511}, {"threads", 511}, {"profile", 1023}};

}  // namespace

std::span<const option_spec> option_specs() {
  return specs;
}

std::optional<level_value> parse_level(const std::string& value, std::string& remedy) {
  const std::size_t at = value.find('@');
  const std::string action = value.substr(0, at);
  const auto known = std::find(action_names.begin(), action_names.end(), action);
  if (known == action_names.end()) {
    remedy = "unknown action '" + action + "': use allow, log, fail, error, abort or trap";
    return std::nullopt;
  }
  level_value level;
  level.action = static_cast<std::uint32_t>(known - action_names.begin());
  level.kinds = HOSTWAIT_ALL;
  if (at != std::string::npos) {
    const std::string list = value.substr(at + 1);
    const std::optional<std::uint32_t> kinds = parse_kinds(list);
    if (!kinds) {
      remedy = "unknown kind in '" + list + "': kinds are";
      for (std::uint32_t kind = 0; kind < HOSTWAIT_KIND_COUNT; ++kind)
        remedy += std::string(" ") + kind_name(kind);
      remedy += ", groups explicit sync all";
      return std::nullopt;
    }
    level.kinds = *kinds;
  }
  return level;
}

std::optional<std::string> wrong_value(const std::string& key, const std::string& value) {
  const auto spec = std::find_if(std::begin(specs), std::end(specs),
                                 [&](const option_spec& each) { return key == each.key; });
  if (spec == std::end(specs)) {
    std::string keys;
    for (const option_spec& each : specs) keys += std::string(" ") + each.key;
    return "unknown option: keys are" + keys;
  }
  const std::string type = spec->type;
  if (type == "level") {
    std::string remedy;
    if (!parse_level(value, remedy)) return remedy;
  } else if (key == "arm") {
    const std::optional<std::uint32_t> kinds = parse_kinds(value);
    if (!kinds || (*kinds & ~armable) != 0) return "use queue_full, poll, unlisted";
  } else if (key == "own_cost") {
    const std::vector<std::string> parts = split(value, ',');
    if (parts.size() > 2 || !is_number(parts[0], 0, 1000000) ||
        (parts.size() == 2 && !is_number(parts[1], 1, 1000000)))
      return "use MICROSECONDS or MICROSECONDS,GB_PER_S, as 120,1";
  } else if (key == "window") {
    if (!is_window(value))
      return "use BEGIN,END in milliseconds of CLOCK_MONOTONIC, END later than BEGIN or 0";
  } else if (type == "number") {
    const auto limits = numbers.find(key);
    const bounds allowed = limits == numbers.end() ? bounds{0, 999999999} : limits->second;
    if (!is_number(value, allowed.least, allowed.most))
      return fmt::format("use {} to {}", allowed.least, allowed.most);
  } else if (key == "trace") {
    if (value != "0") return "this version keeps sums only: trace=0";
  } else if (key == "policy") {
    if (!value.empty()) return "this version reads no rules file: leave it out";
  } else if (type == "flag") {
    if (value != "0" && value != "1") return "use 0 or 1";
  } else if (type == "choice") {
    const auto allowed = choices.find(key);
    if (allowed != choices.end() && value != allowed->second[0] && value != allowed->second[1])
      return fmt::format("use {} or {}", allowed->second[0], allowed->second[1]);
  } else if (const auto most = longest.find(key); most != longest.end()) {
    if (value.size() > most->second) return fmt::format("at most {} bytes", most->second);
  }
  return std::nullopt;
}

std::vector<std::pair<std::string, std::string>> split_options(const std::string& text) {
  std::vector<std::pair<std::string, std::string>> options;
  std::string item;
  std::size_t equals = std::string::npos;
  const auto finish = [&] {
    if (item.empty()) return;
    if (equals == std::string::npos)
      throw failure(exit_usage, "HOSTWAIT_OPTIONS: '" + item +
                                    "' is not understood: write key=value, joined by ':'");
    options.emplace_back(item.substr(0, equals), item.substr(equals + 1));
    item.clear();
    equals = std::string::npos;
  };
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] == ':') {
      finish();
      continue;
    }
    if (text[i] == '\\' && i + 1 < text.size() && (text[i + 1] == ':' || text[i + 1] == '\\')) ++i;
    if (text[i] == '=' && equals == std::string::npos) equals = item.size();
    item += text[i];
  }
  finish();
  return options;
}

void check_option(const std::string& source, const std::string& key, const std::string& value) {
  if (const std::optional<std::string> remedy = wrong_value(key, value))
    throw failure(exit_usage,
                  fmt::format("{}: '{}' is not understood: {}", source, value, *remedy));
}

void check_options_text(const std::string& text) {
  for (const auto& [key, value] : split_options(text))
    check_option("HOSTWAIT_OPTIONS: " + key, key, value);
}

std::string option_text(const std::string& key, const std::string& value) {
  std::string text = key + '=';
  for (const char c : value) {
    if (c == ':' || c == '\\') text += '\\';
    text += c;
  }
  return text;
}

}  // namespace hostwait
