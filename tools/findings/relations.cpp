// SPDX-License-Identifier: Apache-2.0
// Copyright The hostwait authors
#include "relations.hpp"

#include <algorithm>
#include <tuple>

namespace hostwait {

namespace {

std::string fingerprint(const std::shared_ptr<const finding>& site) {
  return site ? site->fingerprint : std::string();
}

auto identity(const broken_capture& c) {
  return std::make_tuple(fingerprint(c.begin.site), fingerprint(c.breaker.site),
                         c.begin.thread_name, c.breaker.thread_name, c.begin.tid == c.breaker.tid,
                         c.mode, c.result, c.refused, c.possible, c.on_stream);
}

}  // namespace

void add_captures(const record_file& record, const site_finder& find,
                  std::vector<broken_capture>& to) {
  record.for_each(HOSTWAIT_SECTION_CAPTURES, [&](std::uint32_t i) {
    if (i >= HOSTWAIT_RECORD_MAX_RELATIONS) return;  // no writer has more
    const hostwait_record_capture entry = record.capture(i);
    broken_capture one;
    one.begin = {fixed_text(entry.begin_thread), entry.begin_tid, find(entry.begin_site)};
    one.breaker = {fixed_text(entry.thread), entry.tid, find(entry.site)};
    one.mode = entry.mode;
    one.result = entry.result;
    one.refused = (entry.flags & HOSTWAIT_CAPTURE_REFUSED) != 0;
    one.possible = (entry.flags & HOSTWAIT_CAPTURE_POSSIBLE) != 0;
    one.on_stream = (entry.flags & HOSTWAIT_CAPTURE_ON_STREAM) != 0;
    one.count = entry.count;
    one.violations = entry.violations;
    if (entry.begin_mono_ns != 0 && entry.mono_ns > entry.begin_mono_ns)
      one.open_ns = entry.mono_ns - entry.begin_mono_ns;
    const auto same = std::find_if(to.begin(), to.end(), [&](const broken_capture& other) {
      return identity(other) == identity(one);
    });
    if (same == to.end()) {
      to.push_back(std::move(one));
    } else {
      same->count += one.count;
      same->violations += one.violations;
    }
  });
}

void add_holder(const record_file& record, const hostwait_record_holder& entry,
                const site_finder& find, std::vector<holding_call>& to) {
  holding_call one;
  one.call = record.string(record.call(entry.holder_call).name);
  one.thread_name = fixed_text(entry.holder_thread);
  one.tid = entry.holder_tid;
  if (entry.holder_site != 0) one.site = find(entry.holder_site - 1);
  one.count = entry.count;
  one.total_ns = entry.total_ns;
  one.max_ns = entry.max_ns;
  add_holders({one}, to);
}

void add_holders(const std::vector<holding_call>& from, std::vector<holding_call>& to) {
  for (const holding_call& one : from) {
    const auto same = std::find_if(to.begin(), to.end(), [&](const holding_call& other) {
      return other.call == one.call && other.thread_name == one.thread_name &&
             fingerprint(other.site) == fingerprint(one.site);
    });
    if (same == to.end()) {
      to.push_back(one);
      continue;
    }
    same->count += one.count;
    same->total_ns += one.total_ns;
    same->max_ns = std::max(same->max_ns, one.max_ns);
  }
  std::stable_sort(to.begin(), to.end(),
                   [](const auto& a, const auto& b) { return a.total_ns > b.total_ns; });
}

const char* capture_mode_name(std::uint32_t mode) {
  static constexpr const char* names[] = {"global", "thread_local", "relaxed"};
  return mode < 3 ? names[mode] : "unknown";
}

}  // namespace hostwait
