// SPDX-License-Identifier: Apache-2.0
// Copyright The hostwait authors
// Gaps after waits: how long a thread then queues nothing.
#include "record.hpp"
#include "record_threads.hpp"

namespace hostwait::record {

namespace {

// The calling thread's writer, without registering the thread.
thread_writer* registered() noexcept {
  return own(own_slot_.writer) ? own_slot_.writer : nullptr;
}

}  // namespace

void gap_begins(thread_writer* w, const tally& at, std::uint64_t now_mono_ns) noexcept {
  // The "other" site has no stack that a gap could belong to.
  if (!own(w) || at.counters == nullptr || at.counters == w->other.counters) return;
  w->gap = at;
  w->gap_since = now_mono_ns;
}

bool gap_is_open() noexcept {
  const thread_writer* w = registered();
  return w != nullptr && w->gap_since != 0;
}

void gap_ends(std::uint64_t now_mono_ns) noexcept {
  thread_writer* w = registered();
  if (w == nullptr || w->gap_since == 0) return;
  const std::uint64_t ns = now_mono_ns > w->gap_since ? now_mono_ns - w->gap_since : 0;
  w->gap_since = 0;
  hostwait_record_counters& c = *w->gap.counters;
  store(c.total_ns, load(c.total_ns) + ns);
  if (ns > load(c.max_ns)) store(c.max_ns, ns);
  std::uint32_t& bucket = w->gap.histogram->bucket[bucket_of(ns)];
  if (load(bucket) != 0xffffffffu) store(bucket, load(bucket) + 1);
}

}  // namespace hostwait::record
