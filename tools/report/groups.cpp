// SPDX-License-Identifier: Apache-2.0
// Copyright The hostwait authors
// Groups of findings.
#include "groups.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <map>
#include <set>

#include "blocks.hpp"
#include "escape.hpp"
#include "symbols/demangle.hpp"

namespace hostwait {

namespace {

constexpr const char* names[] = {"finding", "line",   "function", "call",
                                 "range",   "thread", "process"};

// What tells a group from others, and what it is called.
struct group_key {
  std::string key, name;
};

group_key place_of(const finding& of, bool with_line) {
  if (const python_frame* python = user_python_frame(of)) {
    if (with_line) {
      const std::string line = ':' + std::to_string(python->line);
      return {python->file + line, base_name(python->file) + line};
    }
    return {python->file + ':' + python->function,
            python->function + " (" + base_name(python->file) + ')'};
  }
  const native_frame* native = user_frame(of);
  if (native == nullptr && !of.native.empty()) native = &of.native.front();
  if (native == nullptr) return {"", "no stack"};
  if (with_line && !native->file.empty()) {
    const std::string line = ':' + std::to_string(native->line);
    return {native->file + line, base_name(native->file) + line};
  }
  return {native->module + ':' + native->name(),
          shorten_name(native->name()) + " (" + base_name(native->module) + ')'};
}

group_key key_of(const run_report& report, const finding& of, const share& part, grouping by) {
  const process_info& process = report.processes[part.process];
  const std::string number = std::to_string(part.process);
  const std::string program = fmt::format("{} ({})", process.program, process.pid);
  switch (by) {
    case grouping::line:
      return place_of(of, true);
    case grouping::function:
      return place_of(of, false);
    case grouping::call:
      return {of.runtime_call, of.runtime_call};
    case grouping::range:
      return {of.range, of.range.empty() ? "no range" : of.range};
    case grouping::thread: {
      const std::string tid = part.tid == 0 ? "" : fmt::format(" ({})", part.tid);
      return {number + ':' + std::to_string(part.tid),
              (part.thread.empty() ? "no name" : part.thread) + tid + " of " + program};
    }
    case grouping::process:
      return {number, program};
    case grouping::finding:
      break;
  }
  return {of.fingerprint, of.fingerprint};
}

}  // namespace

const char* grouping_name(grouping by) {
  return names[static_cast<std::size_t>(by)];
}

const std::map<std::string, grouping>& groupings() {
  static const std::map<std::string, grouping> all = [] {
    std::map<std::string, grouping> made;
    for (std::size_t i = 1; i < std::size(names); ++i) made[names[i]] = static_cast<grouping>(i);
    return made;
  }();
  return all;
}

std::vector<group> group_by(const run_report& report, grouping by) {
  struct growing {
    group result;
    std::set<const finding*> findings;
    std::set<std::size_t> processes;
  };
  std::map<std::string, growing> groups;
  const bool by_share = by == grouping::thread || by == grouping::process;
  for (const finding& of : report.findings) {
    for (const share& part : of.shares) {
      const group_key key = key_of(report, of, part, by);
      growing& into = groups[key.key];
      into.result.name = key.name;
      if (by_share) into.result.sum.add(part.sum);
      // The finding's own sum: over threads a copy and its wait need not come in pairs.
      if (!by_share && &part == &of.shares.front()) into.result.sum.add(of.sum);
      into.findings.insert(&of);
      into.processes.insert(part.process);
    }
  }
  std::vector<group> result;
  for (auto& [key, each] : groups) {
    each.result.findings = each.findings.size();
    for (const std::size_t process : each.processes)
      each.result.wall_ns += report.processes[process].run_ns;
    for (const std::size_t process : each.processes) {
      if (report.processes[process].run_ns == 0) each.result.wall_ns = 0;
    }
    result.push_back(std::move(each.result));
  }
  std::stable_sort(result.begin(), result.end(), [](const group& a, const group& b) {
    return std::pair(a.sum.waited_ns, a.sum.total_ns) > std::pair(b.sum.waited_ns, b.sum.total_ns);
  });
  return result;
}

std::string group_table(const run_report& report, const text_style& style) {
  const std::vector<group> groups = group_by(report, style.by);
  const std::size_t shown = style.limit == 0 ? groups.size() : std::min(style.limit, groups.size());
  std::size_t widest = std::string(grouping_name(style.by)).size();
  for (std::size_t i = 0; i < shown; ++i)
    widest = std::max(widest, columns_of(for_terminal(groups[i].name)));
  std::string text;
  const auto add = [&](const std::string& line, paint how) {
    text += painted(style.colour, how, style.width > 0 ? cut_to(line, style.width) : line) + '\n';
  };
  const auto row = [&](const std::string& name, auto findings, auto calls, auto waited, auto latent,
                       auto refused, const std::string& time, const std::string& part) {
    return fmt::format(" {}{}  {:>8} {:>7} {:>7} {:>7} {:>7} {:>9} {:>8}", name,
                       std::string(widest - columns_of(name), ' '), findings, calls, waited, latent,
                       refused, time, part);
  };
  if (shown == 0) return text;
  add(row(grouping_name(style.by), "findings", "calls", "waited", "latent", "refused", "wait time",
          "of wall"),
      paint::bold);
  for (std::size_t i = 0; i < shown; ++i) {
    const group& each = groups[i];
    add(row(for_terminal(each.name), each.findings, each.sum.calls, each.sum.waited,
            each.sum.latent, each.sum.refused, human_time(each.sum.waited_ns),
            percent(each.sum.waited_ns, each.wall_ns)),
        paint::plain);
  }
  if (shown < groups.size())
    text += fmt::format(" and {} more; --limit 0 shows all\n", groups.size() - shown);
  return text;
}

}  // namespace hostwait
