// SPDX-License-Identifier: Apache-2.0
// Copyright The hostwait authors
// Advice and details under the table.
#include "blocks.hpp"

#include <fmt/color.h>
#include <fmt/core.h>

#include <algorithm>

#include "advice.hpp"
#include "escape.hpp"

namespace hostwait {

namespace {

std::string joined(const std::set<std::string>& names) {
  std::string text;
  for (const std::string& name : names) text += (text.empty() ? "" : ", ") + for_terminal(name);
  return text;
}

std::string cost_of(const finding& of) {
  const tally& sum = of.sum;
  std::string text = fmt::format("{} call{}", sum.calls, sum.calls == 1 ? "" : "s");
  for (const auto& [count, word] :
       {std::pair(sum.waited, "waited"), std::pair(sum.latent, "would wait"),
        std::pair(sum.refused, "refused"), std::pair(sum.held, "held"),
        std::pair(sum.violations, "violations")}) {
    if (count > 0) text += fmt::format(", {} {}", count, word);
  }
  text += "; " + human_time(sum.waited_ns) + " waited";
  const std::string part = percent(sum.waited_ns, of.wall_ns);
  if (!part.empty()) text += ", " + part + " of the wall time";
  return text + "; longest " + human_time(sum.max_ns);
}

std::string paragraph(std::size_t number, const finding& of, const text_style& style) {
  std::string text = painted(style.colour, paint::bold,
                             fmt::format("{}. {}  {}  {}\n", number, for_terminal(of.runtime_call),
                                         kind_name(of.kind), where_of(of)));
  const auto add = [&](const std::string& line) {
    const std::string whole = "   " + line;
    text += (style.width > 0 ? cut_to(whole, style.width) : whole) + '\n';
  };
  add(cost_of(of));
  if (of.sum.gaps > 0)
    add(fmt::format("gap after: {} without new work from the thread, {} times, longest {}",
                    human_time(of.sum.gap_ns), of.sum.gaps, human_time(of.sum.gap_max_ns)));
  add("threads " + joined(of.thread_names) + "  fingerprint " + of.fingerprint);
  for (const python_frame& frame : of.python)
    add(fmt::format("  python {}:{} {}", for_terminal(frame.file), frame.line,
                    for_terminal(frame.function)));
  for (const native_frame& frame : of.native) {
    std::string line = "  native " + for_terminal(frame.name());
    if (!frame.file.empty()) line += fmt::format(" {}:{}", for_terminal(frame.file), frame.line);
    add(line);
  }
  const advice& help = advice_for(of);
  text += fmt::format("   advice: {} (docs/advice.md#{})\n", help.sentence, help.anchor);
  return text;
}

}  // namespace

std::string painted(bool on, paint how, const std::string& text) {
  if (!on || how == paint::plain || text.empty()) return text;
  const bool line = text.back() == '\n';
  const std::string inside = line ? text.substr(0, text.size() - 1) : text;
  const fmt::text_style style = how == paint::bold  ? fmt::text_style(fmt::emphasis::bold)
                                : how == paint::dim ? fmt::text_style(fmt::emphasis::faint)
                                                    : fmt::fg(fmt::terminal_color::red);
  return fmt::format(style, "{}", inside) + (line ? "\n" : "");
}

std::string advice_block(const std::vector<const finding*>& rows, const text_style& style) {
  std::vector<const advice*> wanted;
  std::size_t widest = 0;
  for (const finding* each : rows) {
    const advice* help = &advice_for(*each);
    if (std::find(wanted.begin(), wanted.end(), help) != wanted.end()) continue;
    wanted.push_back(help);
    widest = std::max(widest, std::string(help->anchor).size());
  }
  if (wanted.empty()) return "";
  std::string text =
      painted(style.colour, paint::bold, "advice, before and after in docs/advice.md:\n");
  for (const advice* help : wanted)
    text += fmt::format(" {:<{}}  {}\n", help->anchor, widest, help->sentence);
  return text;
}

std::string details(const std::vector<const finding*>& rows, const text_style& style) {
  std::string text;
  for (std::size_t i = 0; i < rows.size(); ++i) text += paragraph(i + 1, *rows[i], style);
  return text;
}

}  // namespace hostwait
