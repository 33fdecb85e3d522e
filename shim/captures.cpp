// SPDX-License-Identifier: Apache-2.0
// Copyright The hostwait authors
// The register of open captures.
#include "captures.hpp"

#include <cstring>

#include "state.hpp"

namespace hostwait::captures {

std::atomic<std::uint32_t> queries_watched{0};

namespace {

constexpr auto relaxed = std::memory_order_relaxed;

struct slot {
  std::atomic<std::uint64_t> key;  // 0 free, `being_filled`, or the origin stream's key
  std::atomic<std::uint64_t> stream, mono_ns;
  std::atomic<std::uint64_t> thread[2];  // the name's bytes
  std::atomic<std::uint32_t> tid, site;
  std::atomic<std::uint8_t> mode;
  std::atomic<bool> broken;
};
constexpr std::uint64_t being_filled = ~std::uint64_t{0};

constinit slot register_[slots]{};
// Number of the record when the first of the open captures was begun: captures do not reach a
// forked child.
std::atomic<std::uint32_t> epoch_{0};

void forget_parent() noexcept {
  for (slot& each : register_) each.key.store(0, relaxed);
  queries_watched.fetch_and(polls_watched, relaxed);
}

// After a fork, the child's record has another number, or none yet.
bool of_this_process() noexcept {
  return epoch_.load(relaxed) == record::epoch();
}

void one_less() noexcept {
  std::uint32_t now = queries_watched.load(relaxed);
  while ((now & ~polls_watched) != 0 && !queries_watched.compare_exchange_weak(now, now - 1)) {
  }
}

}  // namespace

void watch_polls(bool on) noexcept {
  if (on)
    queries_watched.fetch_or(polls_watched, relaxed);
  else
    queries_watched.fetch_and(~polls_watched, relaxed);
}

std::uint64_t key_of(std::uint64_t stream, bool per_thread) noexcept {
  if (stream == 0) stream = per_thread ? 2 : 1;
  return stream == 2 ? reinterpret_cast<std::uint64_t>(&state::tls) | 2 : stream;
}

bool any_open() noexcept {
  if ((queries_watched.load(std::memory_order_acquire) & ~polls_watched) == 0) return false;
  if (of_this_process()) return true;
  forget_parent();
  return false;
}

bool begun_on(std::uint64_t key) noexcept {
  for (const slot& each : register_)
    if (each.key.load(std::memory_order_acquire) == key) return true;
  return false;
}

int begin(const beginning& b) noexcept {
  any_open();  // forgets those of a parent
  epoch_.store(record::epoch(), relaxed);
  queries_watched.fetch_add(1, std::memory_order_acq_rel);
  for (unsigned i = 0; i < slots; ++i) {
    slot& s = register_[i];
    std::uint64_t empty = 0;
    if (!s.key.compare_exchange_strong(empty, being_filled, std::memory_order_acq_rel)) continue;
    std::uint64_t name[2];
    std::memcpy(name, b.thread, sizeof name);
    s.thread[0].store(name[0], relaxed);
    s.thread[1].store(name[1], relaxed);
    s.stream.store(b.stream, relaxed);
    s.mono_ns.store(b.mono_ns, relaxed);
    s.tid.store(b.tid, relaxed);
    s.site.store(b.site, relaxed);
    s.mode.store(b.mode, relaxed);
    s.broken.store(false, relaxed);
    s.key.store(b.key, std::memory_order_release);
    return static_cast<int>(i);
  }
  return -1;
}

void withdraw(int which) noexcept {
  if (which >= 0) register_[which].key.store(0, std::memory_order_release);
  one_less();
}

void end(std::uint64_t key) noexcept {
  for (slot& each : register_) {
    std::uint64_t expected = key;
    if (!each.key.compare_exchange_strong(expected, 0, std::memory_order_acq_rel)) continue;
    one_less();
    return;
  }
  // One that found no slot, if there is one: it was counted without a name.
  std::uint32_t named = 0;
  for (const slot& each : register_) named += each.key.load(relaxed) != 0 ? 1 : 0;
  if ((queries_watched.load(relaxed) & ~polls_watched) > named) one_less();
}

reach reach_of(row_id row, const call_facts& facts, std::uint32_t tid, capture_mode thread_mode,
               bool on_some_capture) noexcept {
  reach out{};
  const std::uint64_t key = key_of(facts.has_stream ? facts.stream : 0, facts.per_thread);
  const bool known = begun_on(key);
  for (unsigned i = 0; i < slots; ++i) {
    const slot& s = register_[i];
    const std::uint64_t origin = s.key.load(std::memory_order_acquire);
    if (origin == 0 || origin == being_filled) continue;
    capture_view view;
    view.mode = static_cast<capture_mode>(s.mode.load(relaxed));
    view.of_this_thread = s.tid.load(relaxed) == tid;
    view.on_stream = origin == key;
    view.on_some_capture = on_some_capture && !known;
    view.blocking = s.stream.load(relaxed) <= 2;  // a default stream that can be captured
    const std::uint64_t bit = std::uint64_t{1} << i;
    if (view.on_stream) out.on_stream |= bit;
    switch (effect_on_capture(row, facts, view, thread_mode)) {
      case capture_effect::breaks:
        out.breaks |= bit;
        break;
      case capture_effect::may_break:
        out.may_break |= bit;
        break;
      case capture_effect::none:
        break;
    }
  }
  return out;
}

std::uint64_t broken_by(const reach& reached, std::uint64_t since_ns, bool& guess) noexcept {
  std::uint64_t candidates = reached.breaks != 0 ? reached.breaks : reached.may_break;
  guess = reached.breaks == 0 && (candidates & (candidates - 1)) != 0;
  for (unsigned i = 0; i < slots; ++i) {
    const std::uint64_t bit = std::uint64_t{1} << i;
    if ((candidates & bit) == 0) continue;
    slot& s = register_[i];
    // Begun after the call: the slot was taken anew meanwhile.
    const bool other = s.mono_ns.load(relaxed) > since_ns;
    if (other || (!guess && s.broken.exchange(true, relaxed)) || (guess && s.broken.load(relaxed)))
      candidates &= ~bit;
  }
  return candidates;
}

beginning at(unsigned which) noexcept {
  const slot& s = register_[which];
  beginning b;
  b.key = s.key.load(relaxed);
  b.stream = s.stream.load(relaxed);
  b.mode = static_cast<capture_mode>(s.mode.load(relaxed));
  b.tid = s.tid.load(relaxed);
  b.site = s.site.load(relaxed);
  b.mono_ns = s.mono_ns.load(relaxed);
  const std::uint64_t name[2] = {s.thread[0].load(relaxed), s.thread[1].load(relaxed)};
  std::memcpy(b.thread, name, sizeof b.thread);
  return b;
}

}  // namespace hostwait::captures
