// SPDX-License-Identifier: Apache-2.0
// Copyright The hostwait authors
// Lays out a frame: who, what hangs, the table.
#include "screen.hpp"

#include <fmt/core.h>

#include <algorithm>

#include "report/blocks.hpp"
#include "report/escape.hpp"

namespace hostwait {

namespace {

struct line {
  std::string text;
  paint how = paint::plain;
};

struct top_row {
  const finding* of;
  std::uint64_t now_ns;  // waited since the last frame
};

std::uint64_t sort_value(const top_row& row, top_order order) {
  const tally& sum = row.of->sum;
  switch (order) {
    case top_order::total:
      return sum.total_ns;
    case top_order::calls:
      return sum.calls;
    case top_order::max:
      return sum.max_ns;
    case top_order::latent:
      return sum.latent;
    case top_order::now:
      return row.now_ns;
    case top_order::waited:
      break;
  }
  return sum.waited_ns;
}

const char* state_of(const process_info& process) {
  return process.alive    ? "running"
         : process.sealed ? "ended"
                          : "ended without closing its record (killed, or _exit)";
}

void add_process(const process_info& process, std::vector<line>& lines) {
  std::string text = fmt::format("hostwait top: {} ({}) {}", for_terminal(process.program),
                                 process.pid, state_of(process));
  if (process.run_ns > 0) text += ", " + human_time(process.run_ns);
  lines.push_back({text, paint::bold});
  for (const hanging_call& hanging : process.hanging) {
    text = process.alive ? "in " : "was in ";
    text += for_terminal(hanging.call);
    if (hanging.ns > 0) text += " for " + human_time(hanging.ns);
    text += fmt::format(", thread {} {}", hanging.tid, for_terminal(hanging.thread_name));
    // A second is no ordinary wait.
    lines.push_back({text, hanging.ns >= 1000000000 ? paint::red : paint::plain});
    lines.push_back({"   stack " + (hanging.at.call.empty() ? std::string("not taken: a call that "
                                                                          "should not wait")
                                                            : stack_line(hanging.at)),
                     paint::plain});
  }
}

std::string row_text(std::size_t widest, const std::string& call, const std::string& kind,
                     const std::string& calls, const std::string& waited, const std::string& latent,
                     const std::string& now, const std::string& time, const std::string& total,
                     const std::string& max, const std::string& where) {
  return fmt::format(" {}{}  {:<11} {:>8} {:>8} {:>8} {:>6} {:>9} {:>8} {:>8}  {}", call,
                     std::string(widest - std::min(widest, columns_of(call)), ' '), kind, calls,
                     waited, latent, now, time, total, max, where);
}

}  // namespace

const std::map<std::string, top_order>& top_orders() {
  static const std::map<std::string, top_order> orders = {
      {"waited", top_order::waited}, {"total", top_order::total},   {"calls", top_order::calls},
      {"max", top_order::max},       {"latent", top_order::latent}, {"now", top_order::now}};
  return orders;
}

namespace {

std::string name_of(top_order order) {
  const auto found = std::find_if(top_orders().begin(), top_orders().end(),
                                  [&](const auto& each) { return each.second == order; });
  return found->first;
}

}  // namespace

std::string draw_screen(const run_report& report, const screen_style& style, screen_state& state,
                        std::uint64_t now_mono_ns) {
  std::vector<line> lines;
  for (const process_info& process : report.processes) add_process(process, lines);
  if (!style.news.empty()) lines.push_back({for_terminal(style.news), paint::red});
  lines.push_back(
      {fmt::format("{} waited in {} findings, {} calls seen; sorted by {}{}",
                   human_time(report.waited_ns()), report.findings.size(), report.calls(),
                   name_of(style.order), style.paused ? "; paused" : ""),
       paint::plain});

  std::vector<top_row> rows;
  std::size_t widest = 4;
  screen_state next;
  next.mono_ns = now_mono_ns;
  for (const finding& of : report.findings) {
    const std::string key = of.fingerprint + of.stack_key;
    const auto before = state.waited_ns.find(key);
    const std::uint64_t old = before == state.waited_ns.end() ? 0 : before->second;
    rows.push_back({&of, style.fresh && of.sum.waited_ns > old ? of.sum.waited_ns - old : 0});
    next.waited_ns[key] = of.sum.waited_ns;
    widest = std::max(widest, columns_of(for_terminal(of.runtime_call)));
  }
  std::stable_sort(rows.begin(), rows.end(), [&](const top_row& a, const top_row& b) {
    return sort_value(a, style.order) > sort_value(b, style.order);
  });
  const std::uint64_t passed = now_mono_ns - std::min(now_mono_ns, state.mono_ns);
  lines.push_back({row_text(widest, "call", "kind", "calls", "waited", "latent", "now", "wait time",
                            "total", "max", "where"),
                   paint::bold});
  const std::size_t footer = style.keys ? 1 : 0;
  const std::size_t room = style.height == 0
                               ? rows.size()
                               : style.height - std::min(style.height, lines.size() + footer);
  for (std::size_t i = 0; i < std::min(room, rows.size()); ++i) {
    const finding& of = *rows[i].of;
    lines.push_back(
        {row_text(widest, for_terminal(of.runtime_call), kind_name(of.kind),
                  std::to_string(of.sum.calls), std::to_string(of.sum.waited),
                  std::to_string(of.sum.latent),
                  style.fresh ? percent(rows[i].now_ns, passed) : "-", human_time(of.sum.waited_ns),
                  human_time(of.sum.total_ns), human_time(of.sum.max_ns), where_of(of)),
         of.only_latent() ? paint::dim : paint::plain});
  }
  if (style.height != 0 && lines.size() + footer > style.height)
    lines.resize(style.height - std::min(style.height, footer));
  if (style.keys)
    lines.push_back(
        {"keys: w waited  t total  c calls  m max  l latent  n now  p pause  q quit", paint::dim});
  std::string text;
  for (const line& each : lines) {
    std::string shown = each.text;
    while (!shown.empty() && shown.back() == ' ') shown.pop_back();
    text += painted(style.colour, each.how, style.width > 0 ? cut_to(shown, style.width) : shown);
    text += '\n';
  }
  state = std::move(next);
  return text;
}

}  // namespace hostwait
