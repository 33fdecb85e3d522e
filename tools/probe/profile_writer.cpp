// SPDX-License-Identifier: Apache-2.0
// Copyright The hostwait authors
#include "profile_writer.hpp"

#include <fmt/core.h>

#include <map>
#include <optional>
#include <tuple>
#include <vector>

namespace hostwait::probe {

namespace {

// What the shim can tell calls of one row apart by, besides their size.
using key = std::tuple<std::string, std::string, std::string, std::string>;  // as the line's fields

std::optional<row_id> row_of(const std::string& symbol) {
  for (unsigned i = 0; i < row_count; ++i)
    if (symbol == rows[i].symbol) return static_cast<row_id>(i);
  return std::nullopt;
}

// Verdicts that follow from the arguments alone. Waits by name, queries and calls whose verdict
// rests on the process's state (queue, staging, loading, captures) are left to the rules.
bool belongs(const result& r, row_id row) {
  switch (rows[row].kind) {
    case HOSTWAIT_KIND_COPY:
    case HOSTWAIT_KIND_ASYNC_COPY:
    case HOSTWAIT_KIND_MEMSET:
    case HOSTWAIT_KIND_FREE:
    case HOSTWAIT_KIND_HOST_FREE:
    case HOSTWAIT_KIND_ALLOC:
    case HOSTWAIT_KIND_MODULE:
    case HOSTWAIT_KIND_CONTEXT:
      break;
    default:
      return false;
  }
  const auto null = [](const operand& end) {
    return end.as != declared::nothing && end.address == nullptr;
  };
  if (null(r.facts.source) || null(r.facts.destination)) return false;
  const hostwait_reason why = r.verdict.reason;
  return r.judged && r.what == outcome::measured && r.busy != stream_kind::none &&
         r.returned.empty() && !r.around.capture_open && !r.around.launch_blocking &&
         why != HOSTWAIT_REASON_STAGING_LIMIT && why != HOSTWAIT_REASON_QUEUE_DEPTH &&
         why != HOSTWAIT_REASON_LAZY_LOAD && why != HOSTWAIT_REASON_CAPTURE;
}

std::string aux_of(const result& r, row_id row) {
  if (rows[row].rule == rule_id::limit) return std::to_string(r.facts.aux);
  if (rows[row].rule == rule_id::copy_peer && r.facts.aux == r.facts.aux2) return "=";
  return "*";
}

// The one verdict that fits all measurements of a size; null: they do not tell.
const char* verdict_for(const std::vector<const result*>& seen) {
  bool none = true, own = true, context = true, own_tested = false;
  for (const result* r : seen) {
    judgement j;
    j.verdict = verdict_of_own_stream(r->facts);
    const bool in_own = predict(j, r->own, r->busy) == prediction::blocked;
    none = none && !r->blocked;
    context = context && r->blocked;
    own = own && in_own == r->blocked;
    own_tested = own_tested || in_own;
  }
  if (none) return own_tested ? "none" : nullptr;
  if (own) return "own";
  return context ? "context" : "depends";
}

struct range {
  std::uint64_t first, last;
  const char* verdict;
};

// Between two measured sizes with different verdicts the profile says nothing.
std::vector<range> ranges_of(const std::map<std::uint64_t, std::vector<const result*>>& by_size) {
  std::vector<range> out;
  for (const auto& [size, seen] : by_size) {
    const char* verdict = verdict_for(seen);
    if (verdict == nullptr) continue;
    if (!out.empty() && std::string(out.back().verdict) == verdict)
      out.back().last = size;
    else
      out.push_back({size, size, verdict});
  }
  return out;
}

}  // namespace

namespace {

std::string lines_for(const report& all, bool mixed_too, bool (*wanted)(const result&)) {
  std::map<key, std::map<std::uint64_t, std::vector<const result*>>> groups;
  for (const result& r : all.rows) {
    const std::optional<row_id> row = r.in_table ? row_of(r.symbol) : std::nullopt;
    if (!row || !belongs(r, *row) || !wanted(r)) continue;
    const pointer_needs needs = needs_of(*row, r.facts);
    // Where the shim asks for no kind, it hands over "unknown".
    groups[{r.symbol, needs.source ? name_of(r.source) : "-",
            needs.destination ? name_of(r.destination) : "-", aux_of(r, *row)}][r.facts.bytes]
        .push_back(&r);
  }
  std::string text;
  for (const auto& [of, by_size] : groups) {
    const std::vector<range> ranges = ranges_of(by_size);
    for (std::size_t i = 0; i < ranges.size(); ++i) {
      if (!mixed_too && std::string(ranges[i].verdict) == "depends") continue;
      const std::string from = i == 0 ? "*" : std::to_string(ranges[i].first);
      const std::string to = i + 1 == ranges.size() ? "*" : std::to_string(ranges[i].last);
      text += fmt::format("{}\t{}\t{}\t{}\t{}\t{}\t{}\n", std::get<0>(of), std::get<1>(of),
                          std::get<2>(of), from, to, std::get<3>(of), ranges[i].verdict);
    }
  }
  return text;
}

}  // namespace

std::string to_profile(const report& all) {
  std::string text = "hostwait-profile 1\n";
  text +=
      fmt::format("device\t{}\t{}\t{}\n", all.device, all.compute_capability, all.driver_version);
  text += "# function, source, destination, smallest and largest size, argument, waits for\n";
  // Between two devices it depends on which they are.
  return text + lines_for(all, false, [](const result& r) {
           return rows[*row_of(r.symbol)].rule != rule_id::copy_peer || r.facts.aux == r.facts.aux2;
         });
}

std::string without_rule(const report& all) {
  return lines_for(all, true,
                   [](const result& r) { return r.verdict.reason == HOSTWAIT_REASON_UNMEASURED; });
}

}  // namespace hostwait::probe
