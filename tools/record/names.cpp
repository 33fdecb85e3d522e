// SPDX-License-Identifier: Apache-2.0
// Copyright The hostwait authors
// The words that reports use for the numbers of record.h.
#include <cstddef>

#include "reader.hpp"

namespace hostwait {

namespace {
template <std::size_t size>
const char* pick(const char* const (&names)[size], std::uint32_t i) {
  return i < size ? names[i] : "unknown";
}
}  // namespace

const char* kind_name(std::uint32_t kind) {
  static constexpr const char* names[] = {
      "device_sync", "stream_sync", "event_sync", "copy",    "async_copy", "memset", "free",
      "host_free",   "alloc",       "module",     "context", "queue_full", "poll",   "unlisted"};
  static_assert(sizeof names / sizeof *names == HOSTWAIT_KIND_COUNT);
  return pick(names, kind);
}

const char* verdict_name(std::uint32_t verdict) {
  static constexpr const char* names[] = {"none",    "stream",  "legacy",
                                          "context", "depends", "unmeasured"};
  return pick(names, verdict);
}

const char* reason_name(std::uint32_t reason) {
  static constexpr const char* names[] = {"",           "staging_limit", "queue_depth", "lazy_load",
                                          "unmeasured", "capture",       "graph_nodes"};
  return pick(names, reason);
}

const char* section_name(std::uint32_t id) {
  static constexpr const char* names[] = {
      "unknown",  "calls",      "sites",  "threads", "frames", "python code", "strings", "modules",
      "counters", "histograms", "ranges", "steps",   "trace",  "captures",    "control", "holders"};
  static_assert(sizeof names / sizeof *names == HOSTWAIT_SECTION_HOLDERS + 1);
  return pick(names, id);
}

}  // namespace hostwait
