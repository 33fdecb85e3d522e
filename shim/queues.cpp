// SPDX-License-Identifier: Apache-2.0
// Copyright The hostwait authors
// Lanes: one per stream that something was queued on. Numbers only grow: what was queued, and up to
// where it is known to be done. All are plain atomics; a bound that is read amid a change is too
// high, never too low.
#include "queues.hpp"

#include <atomic>

#include "captures.hpp"
#include "state.hpp"

namespace hostwait::queues {

namespace {

constexpr auto relaxed = std::memory_order_relaxed;

struct lane {
  std::atomic<std::uint64_t> key, queued, done;
  std::atomic<std::uint64_t> inline_until;  // number of the last upload that travels in the queue
};
constexpr unsigned max_lanes = 256, max_functions = 4096, probes = 16;
constinit lane lanes_[max_lanes]{};
constinit std::atomic<std::uint64_t> functions_[max_functions]{};
std::atomic<unsigned> lanes_used_{0};
std::atomic<std::uint64_t> total_{0}, context_done_{0}, inline_until_{0};
std::atomic<bool> escaped_{false}, several_contexts_{false};
std::atomic<std::uint64_t> only_context_{0};

// Uploads from pageable memory up to this size travel in the queue (measured).
constexpr std::uint64_t inline_limit = 64u << 10;
// What a graph puts into the queue is not among the arguments.
constexpr std::uint64_t whole_queue = 1024;

// How many entries a call adds to its stream's queue, at most.
std::uint64_t entries_of(row_id row, const call_facts& facts) noexcept {
  switch (rows[row].rule) {
    case rule_id::copy_sync:
    case rule_id::copy_async:
    case rule_id::copy_device:
    case rule_id::copy_peer:
    case rule_id::memset_sync:
    case rule_id::enqueue:
    case rule_id::launch:
      return 1;
    case rule_id::alloc:
      return facts.has_stream ? 1 : 0;
    case rule_id::free:  // of a pool's memory: in stream order
      return 1;
    case rule_id::copy_batch:
      return facts.aux < whole_queue ? facts.aux : whole_queue;
    case rule_id::graph_launch:
      return whole_queue;
    default:
      return 0;
  }
}

lane* lane_of(std::uint64_t key, bool make) noexcept {
  const unsigned used = lanes_used_.load(std::memory_order_acquire);
  for (unsigned i = 0; i < used && i < max_lanes; ++i)
    if (lanes_[i].key.load(relaxed) == key) return &lanes_[i];
  if (!make) return nullptr;
  // Two threads may make two lanes of one stream: both count, and the sum is the same.
  const unsigned mine = lanes_used_.fetch_add(1, std::memory_order_acq_rel);
  if (mine >= max_lanes) {
    escaped_.store(true, relaxed);
    return nullptr;
  }
  lanes_[mine].key.store(key, std::memory_order_release);
  return &lanes_[mine];
}

void raise(std::atomic<std::uint64_t>& to, std::uint64_t value) noexcept {
  std::uint64_t now = to.load(relaxed);
  while (now < value && !to.compare_exchange_weak(now, value, relaxed)) {
  }
}

std::uint64_t outstanding() noexcept {
  std::uint64_t sum = 0;
  const unsigned used = lanes_used_.load(std::memory_order_acquire);
  for (unsigned i = 0; i < used && i < max_lanes; ++i) {
    const std::uint64_t done = lanes_[i].done.load(relaxed),
                        queued = lanes_[i].queued.load(relaxed);
    if (queued > done) sum += queued - done;
  }
  const std::uint64_t since = total_.load(relaxed) - context_done_.load(relaxed);
  return since < sum ? since : sum;
}

bool inline_copies() noexcept {
  if (inline_until_.load(relaxed) <= context_done_.load(relaxed)) return false;
  const unsigned used = lanes_used_.load(std::memory_order_acquire);
  for (unsigned i = 0; i < used && i < max_lanes; ++i)
    if (lanes_[i].inline_until.load(relaxed) > lanes_[i].done.load(relaxed)) return true;
  return false;
}

// True at the first sight; also where there is no room to remember it.
bool first_sight(std::uint64_t function) noexcept {
  const std::uint64_t start = (function * 0x9e3779b97f4a7c15u) >> 52;  // 12 bits
  for (unsigned i = 0; i < probes; ++i) {
    auto& place = functions_[(start + i) % max_functions];
    std::uint64_t there = place.load(relaxed);
    if (there == function) return false;
    if (there == 0 && place.compare_exchange_strong(there, function, relaxed)) return true;
    if (there == function) return false;
  }
  return true;
}

void forget_functions() noexcept {
  for (auto& place : functions_)
    if (place.load(relaxed) != 0) place.store(0, relaxed);
}

std::uint64_t stream_key(const call_facts& facts) noexcept {
  return captures::key_of(facts.has_stream ? facts.stream : 0, facts.per_thread);
}

}  // namespace

bool counted() noexcept {
  return (state::settings().armed & HOSTWAIT_QUEUE_FULL) != 0 && !escaped_.load(relaxed);
}

void before(row_id row, const call_facts& facts, hostwait_memory source, bool capturing,
            mark& m) noexcept {
  m.counted = counted();
  if (!m.counted) return;
  if (row == row_cuGreenCtxCreate) context_seen(0);
  m.new_function = false;
  m.key = stream_key(facts);
  m.total = total_.load(relaxed);
  lane* on = lane_of(m.key, false);
  m.on_stream = on != nullptr ? on->queued.load(relaxed) : 0;
  m.own_stream_idle =
      on == nullptr || on->done.load(relaxed) >= m.on_stream || context_done_ >= m.total;
  const std::uint64_t ahead = outstanding();
  m.queued = ahead < surroundings::queued_unknown ? static_cast<std::uint32_t>(ahead)
                                                  : surroundings::queued_unknown;
  m.inline_copies = inline_copies();
  if (rows[row].rule == rule_id::launch && !capturing)
    m.new_function = facts.aux == 0 || first_sight(facts.aux);
  const std::uint64_t entries = capturing ? 0 : entries_of(row, facts);
  if (entries == 0) return;
  if (on == nullptr) on = lane_of(m.key, true);
  const std::uint64_t now = total_.fetch_add(entries, relaxed) + entries;
  if (on == nullptr) return;
  const std::uint64_t last = on->queued.fetch_add(entries, relaxed) + entries;
  const bool from_host = facts.source.address != nullptr && facts.bytes <= inline_limit &&
                         (source == HOSTWAIT_MEMORY_PAGEABLE || source == HOSTWAIT_MEMORY_UNKNOWN);
  if (from_host) {
    raise(inline_until_, now);
    raise(on->inline_until, last);
  }
}

void after(row_id row, const call_facts& facts, hostwait_verdict verdict, const mark& m) noexcept {
  if (!m.counted) return;
  switch (rows[row].rule) {
    case rule_id::context:
      if (!several_contexts_.load(relaxed)) raise(context_done_, m.total);
      return;
    case rule_id::module:
    case rule_id::reset:
      forget_functions();  // a handle may come back as another function's
      return;
    case rule_id::stream:
    case rule_id::query:
      if (!facts.has_stream) return;
      break;
    case rule_id::copy_async:
      // By its verdict it returns when it is done, and so is all before it.
      if (verdict != HOSTWAIT_VERDICT_STREAM && verdict != HOSTWAIT_VERDICT_LEGACY) return;
      break;
    default:
      return;
  }
  if (lane* on = lane_of(m.key, false)) raise(on->done, m.on_stream);
}

void look_at(policy::action_set effective) noexcept {
  if ((state::settings().armed & HOSTWAIT_QUEUE_FULL) == 0) return;
  for (const unsigned kind : {HOSTWAIT_KIND_COPY, HOSTWAIT_KIND_ASYNC_COPY, HOSTWAIT_KIND_MEMSET,
                              HOSTWAIT_KIND_QUEUE_FULL})
    if (policy::action_of(effective, kind) == HOSTWAIT_ALLOW) escaped_.store(true, relaxed);
}

void context_seen(std::uint64_t device_plus_1) noexcept {
  constexpr std::uint64_t made = ~std::uint64_t{0};  // each is another one
  const std::uint64_t key = device_plus_1 != 0 ? device_plus_1 : made;
  std::uint64_t first = 0;
  if (only_context_.compare_exchange_strong(first, key, relaxed)) return;
  if (first != key || key == made) several_contexts_.store(true, relaxed);
}

}  // namespace hostwait::queues
