// SPDX-License-Identifier: Apache-2.0
// Copyright The hostwait authors
// Broken captures on the terminal: two threads and two places do not fit into a row.
#include <fmt/core.h>

#include <algorithm>

#include "blocks.hpp"
#include "escape.hpp"
#include "findings/relations.hpp"

namespace hostwait {

namespace {

std::string times(std::uint64_t n, const char* one) {
  return fmt::format("{} {}{}", n, one, n == 1 ? "" : "s");
}

std::string side_of(const capture_side& side, bool with_call) {
  std::string text;
  if (with_call) text = side.site ? for_terminal(side.site->runtime_call) + " " : "a call ";
  text += side.tid != 0 ? fmt::format("on thread {} {}", side.tid, for_terminal(side.thread_name))
                        : std::string("on an unknown thread");
  return side.site ? text + " at " + where_of(*side.site) : text;
}

}  // namespace

std::string captures_block(const run_report& report, const text_style& style) {
  std::string text;
  const std::size_t shown =
      style.limit == 0 ? report.captures.size() : std::min(style.limit, report.captures.size());
  for (std::size_t i = 0; i < shown; ++i) {
    const broken_capture& each = report.captures[i];
    text += each.refused    ? "capture saved: refused "
            : each.possible ? "capture broken, probably this one: "
                            : "capture broken: ";
    text += side_of(each.breaker, true);
    text += fmt::format("\n  the capture ({} mode) was begun {}", capture_mode_name(each.mode),
                        side_of(each.begin, false));
    if (each.open_ns > 0) text += ", " + human_time(each.open_ns) + " before";
    text += "; " + times(each.count, "time");
    if (each.violations > 0) text += ", " + times(each.violations, "violation");
    text += '\n';
  }
  if (shown < report.captures.size())
    text += fmt::format(" and {} more broken captures; --limit 0 shows all\n",
                        report.captures.size() - shown);
  return text;
}

}  // namespace hostwait
