// SPDX-License-Identifier: Apache-2.0
// Copyright The hostwait authors
// Bounds of numeric options. CLI::Range lets NaN pass, and prints bounds of any double in full.
#pragma once

#include <fmt/core.h>

#include <CLI/CLI.hpp>
#include <string>

namespace hostwait {

inline CLI::Validator number_between(double least, double most) {
  return CLI::Validator(
      [least, most](std::string& text) -> std::string {
        double value = 0;
        if (CLI::detail::lexical_cast(text, value) && value >= least && value <= most) return "";
        return fmt::format("'{}' is no number from {:g} to {:g}", text, least, most);
      },
      "NUMBER");
}

}  // namespace hostwait
