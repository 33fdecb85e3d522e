// SPDX-License-Identifier: Apache-2.0
// Copyright The hostwait authors
// Which sentence belongs to which finding.
#include "advice.hpp"

#include <algorithm>
#include <iterator>
#include <string_view>

namespace hostwait {

namespace {

constexpr advice table[] = {
#define HW_ADVICE(anchor, sentence) {#anchor, sentence},
#include "advice.def"
#undef HW_ADVICE
};

std::string_view anchor_of(const finding& of) {
  switch (of.reason) {
    case HOSTWAIT_REASON_STAGING_LIMIT:
      return "staging_limit";
    case HOSTWAIT_REASON_LAZY_LOAD:
      return "lazy_load";
    case HOSTWAIT_REASON_CAPTURE:
      return "capture";
    case HOSTWAIT_REASON_GRAPH_NODES:
      return "graph_nodes";
    case HOSTWAIT_REASON_QUEUE_DEPTH:
      return "queue_full";
    default:
      break;
  }
  // Nothing to wait for by its arguments, and yet it stayed.
  if (of.verdict == HOSTWAIT_VERDICT_NONE && of.sum.held > 0) return "held";
  return kind_name(of.kind);
}

}  // namespace

const advice& advice_for(const finding& of) {
  const std::string_view wanted = anchor_of(of);
  const auto found = std::find_if(std::begin(table), std::end(table),
                                  [&](const advice& each) { return wanted == each.anchor; });
  if (found != std::end(table)) return *found;
  // A kind that is newer than this tool.
  return *std::find_if(std::begin(table), std::end(table), [](const advice& each) {
    return std::string_view("unlisted") == each.anchor;
  });
}

std::span<const advice> all_advice() {
  return table;
}

}  // namespace hostwait
