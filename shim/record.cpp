// SPDX-License-Identifier: Apache-2.0
// Copyright The hostwait authors
// The writer of the record: the call that a thread is in, counting a call, totals.
#include "record.hpp"

#include <time.h>

#include <bit>
#include <cstring>

#include "record_threads.hpp"
#include "resolve.hpp"

namespace hostwait::record {

namespace {

constinit std::atomic<std::uint32_t> max_sites_{default_max_sites};
constinit number_table sites_{false};
constexpr std::uint64_t gap_mark = 0x9e3779b97f4a7c15;  // tells a site from the gaps after it

// Saturating, for the 32-bit words.
void one_more(std::uint32_t& of) noexcept {
  std::uint32_t now = load(of);
  if (now != 0xffffffffu) store(of, now + 1);
}
void one_more(std::uint64_t& of) noexcept {
  store(of, load(of) + 1);
}

// Counters of the folded entry have many writers: atomic additions. All others have one.
HOSTWAIT_HOT void count(const tally& to, const observation& seen) noexcept {
  hostwait_record_counters& c = *to.counters;
  one_more(c.calls);
  switch (seen.what) {
    case outcome::counted:
      break;
    case outcome::waited:
      one_more(c.waited);
      store(c.waited_ns, load(c.waited_ns) + seen.ns);
      break;
    case outcome::latent:
      one_more(c.latent);
      break;
    case outcome::refused:
      one_more(c.refused);
      break;
    case outcome::held:
      one_more(c.held);
      break;
  }
  if (seen.violation) one_more(c.violations);
  store(c.total_ns, load(c.total_ns) + seen.ns);
  if (seen.ns > load(c.max_ns)) store(c.max_ns, seen.ns);
  one_more(to.histogram->bucket[bucket_of(seen.ns)]);
}

void count_shared(const tally& to, const observation& seen) noexcept {
  hostwait_record_counters& c = *to.counters;
  add_shared(c.calls, std::uint64_t{1});
  switch (seen.what) {
    case outcome::counted:
      break;
    case outcome::waited:
      add_shared(c.waited, std::uint64_t{1});
      add_shared(c.waited_ns, seen.ns);
      break;
    case outcome::latent:
      add_saturating(c.latent, 1);
      break;
    case outcome::refused:
      add_saturating(c.refused, 1);
      break;
    case outcome::held:
      add_saturating(c.held, 1);
      break;
  }
  if (seen.violation) add_saturating(c.violations, 1);
  add_shared(c.total_ns, seen.ns);
  std::atomic_ref<std::uint64_t> longest(c.max_ns);
  std::uint64_t before = longest.load(std::memory_order_relaxed);
  while (seen.ns > before &&
         !longest.compare_exchange_weak(before, seen.ns, std::memory_order_relaxed)) {
  }
  add_shared(to.histogram->bucket[bucket_of(seen.ns)], 1u);
}

std::uint64_t word_of(const judgement& v) noexcept {
  return static_cast<std::uint64_t>(v.verdict) | static_cast<std::uint64_t>(v.reason) << 8 |
         static_cast<std::uint64_t>(v.direction) << 16 |
         static_cast<std::uint64_t>(v.source & 15) << 24 |
         static_cast<std::uint64_t>(v.destination & 15) << 28;
}

std::size_t label_size(const char* label) noexcept {
  return label == nullptr || *label == '\0' ? 0 : strnlen(label, 63);
}

hash128 identity_of(const site_key& key) noexcept {
  hash128 hash;
  hash.add(word_of(key.verdict) | static_cast<std::uint64_t>(key.row) << 32 |
           static_cast<std::uint64_t>(key.in_capture) << 48 |
           static_cast<std::uint64_t>(key.audit) << 49 | static_cast<std::uint64_t>(key.gap) << 57 |
           static_cast<std::uint64_t>(key.native_depth) << 50);
  hash.add(static_cast<std::uint64_t>(key.range) << 32 | key.python);
  for (std::uint32_t i = 0; i < key.native_depth; ++i) hash.add(key.native[i]);
  std::size_t size = label_size(key.label);
  if (size != 0) hash.add(hash_of(key.label, size));
  return hash;
}

// The innermost frame's number. Only looks where the table of sites is full: a site that cannot be
// had must not leave its frames behind. absent: not known.
std::uint32_t native_frame(const site_key& key, bool only_look) noexcept {
  std::uint32_t generation = resolve::loader_generation();
  std::uint32_t frame = 0;
  for (std::uint32_t i = key.native_depth; i-- != 0;) {
    std::uint32_t module = module_of(key.native[i] - 1, generation);
    if (only_look) {
      frame = known_frame(frame, key.native[i], module);
      if (frame == number_table::absent) return frame;
    } else {
      frame = frame_number(frame, key.native[i], module);
    }
  }
  return frame;
}

std::uint32_t site_number(std::uint32_t thread, const site_key& key) noexcept {
  std::uint32_t count = sections_.of(HOSTWAIT_SECTION_SITES).count();
  bool full = count - 1 >= max_sites_.load(std::memory_order_relaxed);
  std::uint32_t native = native_frame(key, full);
  std::uint32_t call = call_number(key.row);
  std::uint32_t label = text_number(key.label, label_size(key.label));
  if (native != number_table::absent && call != 0) {
    std::uint64_t hash = hash_of(word_of(key.verdict) | static_cast<std::uint64_t>(call) << 32,
                                 static_cast<std::uint64_t>(native) << 32 | key.python,
                                 static_cast<std::uint64_t>(label) << 32 | key.range << 2 |
                                     (key.audit ? 2u : 0u) | (key.in_capture ? 1u : 0u)) ^
                         (key.gap ? gap_mark : 0);
    std::uint32_t known = sites_.find(hash);
    if (known != number_table::absent) return known;
    hostwait_record_site* site = nullptr;
    if (!full && sites_.reserve())
      site = static_cast<hostwait_record_site*>(sections_.next(HOSTWAIT_SECTION_SITES));
    if (site != nullptr) {
      site->call = call - 1;
      site->verdict = static_cast<std::uint8_t>(key.verdict.verdict);
      site->reason = static_cast<std::uint8_t>(key.verdict.reason);
      site->direction = static_cast<std::uint8_t>(key.verdict.direction);
      site->memory = static_cast<std::uint8_t>(key.verdict.source | (key.verdict.destination << 4));
      site->native = native;
      site->python = key.python;
      site->label = label;
      site->range = key.range;
      site->first_thread = thread;
      site->flags = (key.in_capture ? std::uint32_t{HOSTWAIT_SITE_IN_CAPTURE} : 0) |
                    (key.audit ? std::uint32_t{HOSTWAIT_SITE_AUDIT} : 0) |
                    (key.gap ? std::uint32_t{HOSTWAIT_SITE_GAP} : 0);
      site->first_mono_ns = now_ns();
      site->bytes = key.bytes;
      site->stream = key.stream;
      std::uint32_t number = sections_.publish_next(HOSTWAIT_SECTION_SITES);
      sites_.insert(hash, number);
      return number;
    }
  }
  mark(HOSTWAIT_RECORD_FULL);
  add_shared(sections_.header()->dropped_sites, 1u);
  return other_site;
}

bool is_whole(const site_key& key) noexcept {
  return key.python != not_now && key.range != not_now;
}

// Where a site that this thread does not know yet counts. Without counters: it cannot be had now.
tally first_sight(thread_writer* w, const site_key& key, const hash128& hash) noexcept {
  if (!is_whole(key)) return {};
  slow_path inside(page());
  if (!inside) return {};
  std::uint32_t generation = resolve::loader_generation();
  if (load(w->generation) != generation) {
    // Addresses may mean other code now: every site of this thread is looked up anew.
    w->sites.clear();
    store(w->generation, generation);
  }
  tally to = w->other;
  std::uint32_t site = site_number(w->index, key);
  if (site != other_site) {
    if (pair(w->index, site, to)) {
      w->sites.insert(hash, to);
    } else {
      mark(HOSTWAIT_RECORD_FULL);
    }
  }
  return to;
}

tally known_sight(const thread_writer* w, const hash128& hash) noexcept {
  return load(w->generation) == resolve::loader_generation() ? w->sites.find(hash) : tally{};
}

void note_unregistered(const site_key& key, const observation& seen) noexcept {
  slow_path inside(page());
  tally to = folded_other();
  if (inside && is_whole(key)) {
    std::uint32_t site = site_number(0, key);
    if (site != other_site && !pair(0, site, to)) mark(HOSTWAIT_RECORD_FULL);
  } else {
    add_shared(sections_.header()->unseen_locks, std::uint64_t{1});
  }
  count_shared(to, seen);
  add_shared(entry_at<hostwait_record_thread>(HOSTWAIT_SECTION_THREADS, 0)->recorded,
             std::uint64_t{1});
}

}  // namespace

unsigned bucket_of(std::uint64_t ns) noexcept {
  unsigned bucket = static_cast<unsigned>(std::bit_width(ns | 1)) - 1;
  return bucket < 31 ? bucket : 31;
}

std::uint32_t epoch() noexcept {
  return current_open();
}

void set_max_sites(std::uint32_t limit) noexcept {
  max_sites_.store(limit != 0 ? limit : default_max_sites, std::memory_order_relaxed);
}

void forget_sites() noexcept {
  sites_.forget();
  forget_relations();
}

tally tally_of(thread_writer* w, const site_key& key) noexcept {
  if (!own(w)) return {};
  const hash128 hash = identity_of(key);
  const tally known = known_sight(w, hash);
  return known.counters != nullptr ? known : first_sight(w, key, hash);
}

void enter(thread_writer* w, row_id row, const tally& at, std::uint64_t now_mono_ns) noexcept {
  if (!own(w)) return;
  std::uint32_t call = known_call(row);
  if (call == 0) {
    slow_path inside(page());
    if (inside) call = call_number(row);
  }
  store(w->entry->in_site, at.counters != nullptr ? load(at.counters->site) + 1 : 0);
  store(w->entry->in_call_since_ns, now_mono_ns);
  publish(w->entry->in_call, call);
}

void leave(thread_writer* w) noexcept {
  if (!own(w)) return;
  store(w->entry->in_call, 0u);
  store(w->entry->in_call_since_ns, std::uint64_t{0});
  store(w->entry->in_site, 0u);
}

void note(thread_writer* w, const site_key& key, const observation& seen) noexcept {
  if (!own(w)) {
    if (alive()) note_unregistered(key, seen);
    return;
  }
  tally to = tally_of(w, key);
  if (to.counters == nullptr) {
    add_shared(sections_.header()->unseen_locks, std::uint64_t{1});
    to = w->other;
  }
  note(w, to, seen);
}

void note(thread_writer* w, const tally& to, const observation& seen) noexcept {
  if (!own(w)) return;
  store(w->entry->recorded, load(w->entry->recorded) + 1);
  count(to, seen);
}

std::uint32_t site_of(thread_writer* w, const site_key& key) noexcept {
  const tally to = tally_of(w, key);
  return to.counters != nullptr ? load(to.counters->site) : HOSTWAIT_CAPTURE_NO_SITE;
}

totals sum() noexcept {
  totals all{};
  if (!alive()) return all;
  std::uint64_t& sequence = sections_.header()->fold_sequence;
  // A thread that folds may have lost its processor: its counts are in two places meanwhile. Waited
  // for a quarter of a second at most.
  constexpr unsigned attempts = 5000;
  for (unsigned attempt = 0; attempt < attempts; ++attempt) {
    if (attempt > 100) {
      const timespec shortly{0, 50000};
      sys::call(SYS_nanosleep, reinterpret_cast<long>(&shortly), 0);
    }
    if (next_in_sequence(sequence, 0) % 2 != 0 && attempt + 1 != attempts) continue;
    all = {};
    const std::uint64_t before = next_in_sequence(sequence, 0);
    std::uint32_t count = sections_.of(HOSTWAIT_SECTION_COUNTERS).count();
    for (std::uint32_t i = 0; i < count; ++i) {
      auto& c = *entry_at<hostwait_record_counters>(HOSTWAIT_SECTION_COUNTERS, i);
      all.calls += load(c.calls);
      all.waited += load(c.waited);
      all.latent += load(c.latent);
      all.refused += load(c.refused);
      all.held += load(c.held);
      all.violations += load(c.violations);
      all.waited_ns += load(c.waited_ns);
    }
    if (before % 2 == 0 && next_in_sequence(sequence, 0) == before) break;
  }
  return all;
}

void count_allowed(thread_writer* w, std::uint64_t calls) noexcept {
  if (own(w)) {
    store(w->entry->allowed, load(w->entry->allowed) + calls);
  } else if (alive()) {
    add_shared(entry_at<hostwait_record_thread>(HOSTWAIT_SECTION_THREADS, 0)->allowed, calls);
  }
}

}  // namespace hostwait::record
