// SPDX-License-Identifier: Apache-2.0
// Copyright The hostwait authors
// Relations between two threads: who broke whose capture, who was held up by whom. All of it is
// rare, so the entries are found and made under the lock of the slow path; their sums are atomic,
// since any thread may add to them.
#include <cstring>

#include "record.hpp"
#include "record_threads.hpp"

// ThreadSanitizer does not know fences. The words around them here are atomic, all of them: there
// is nothing that it could take for a race.
#if defined(__SANITIZE_THREAD__)
#pragma GCC diagnostic ignored "-Wtsan"
#endif

namespace hostwait::record {

namespace {

constinit number_table captures_{false}, holders_{false};
constexpr std::uint32_t max_relations = HOSTWAIT_RECORD_MAX_RELATIONS;
// Holders whose site is not known yet: they are still in the call.
constinit std::atomic<std::uint32_t> without_site_{0};

// The entry under that hash, made from `first` (sums zero) where there is none yet; null without
// room.
template <class Entry>
Entry* relation(unsigned section, number_table& table, std::uint64_t hash,
                const Entry& first) noexcept {
  std::uint32_t number = table.find(hash);
  if (number == number_table::absent) {
    if (sections_.of(section).count() == max_relations || !table.reserve()) return nullptr;
    auto* entry = static_cast<Entry*>(sections_.next(section));
    if (entry == nullptr) return nullptr;
    *entry = first;
    number = sections_.publish_next(section);
    table.insert(hash, number);
  }
  return entry_at<Entry>(section, number);
}

std::uint64_t both(std::uint32_t high, std::uint32_t low) noexcept {
  return static_cast<std::uint64_t>(high) << 32 | low;
}

struct stay {
  std::uint32_t call = 0, site_plus_1 = 0;  // call: index + 1, 0 = none
  std::uint64_t since = 0, until = 0;
};

// The call that a thread is in, and the last one in which it stayed long. A slot that changes
// meanwhile gives nothing.
stay in_progress(const hostwait_record_thread& t, std::uint64_t until) noexcept {
  const std::atomic_ref<std::uint32_t> call(const_cast<std::uint32_t&>(t.in_call));
  const std::uint32_t first = call.load(std::memory_order_acquire);
  const std::uint64_t since = load(t.in_call_since_ns);
  std::atomic_thread_fence(std::memory_order_acquire);
  if (first == 0 || since == 0 || call.load(std::memory_order_relaxed) != first) return {};
  return {first, 0, since, until};
}
stay last_long(const hostwait_record_thread& t) noexcept {
  const std::atomic_ref<std::uint64_t> since(const_cast<std::uint64_t&>(t.long_since_ns));
  stay s;
  s.since = since.load(std::memory_order_acquire);
  s.until = load(t.long_until_ns);
  s.call = load(t.long_call);
  s.site_plus_1 = load(t.long_site);
  std::atomic_thread_fence(std::memory_order_acquire);
  return s.since == 0 || since.load(std::memory_order_relaxed) != s.since ? stay{} : s;
}

std::uint64_t overlap(const stay& s, std::uint64_t since, std::uint64_t until) noexcept {
  const std::uint64_t from = s.since > since ? s.since : since;
  const std::uint64_t to = s.until < until ? s.until : until;
  return to > from ? to - from : 0;
}

unsigned rank_of(const stay& s) noexcept {
  if (s.call == 0 || s.call > sections_.of(HOSTWAIT_SECTION_CALLS).count()) return 0;
  return hold_rank(entry_at<hostwait_record_call>(HOSTWAIT_SECTION_CALLS, s.call - 1)->kind);
}

}  // namespace

void forget_relations() noexcept {
  captures_.forget();
  holders_.forget();
  without_site_.store(0, std::memory_order_relaxed);
}

thread_identity identity_of_thread(const thread_writer* w) noexcept {
  thread_identity me{};
  if (own(w)) {
    me.tid = load(w->entry->tid);
    load_name(*w->entry, me.name);
  } else {
    me.tid = static_cast<std::uint32_t>(sys::gettid());
  }
  return me;
}

void note_capture(const hostwait_record_capture& seen) noexcept {
  if (!alive()) return;
  slow_path inside(page());
  if (!inside) {
    add_shared(sections_.header()->unseen_locks, std::uint64_t{1});
    return;
  }
  const std::uint64_t key =
      hash_of(both(seen.begin_site, seen.site), both(seen.begin_tid, seen.tid),
              both(static_cast<std::uint32_t>(seen.result), seen.flags));
  hostwait_record_capture first = seen;
  first.count = first.violations = 0;
  auto* entry = relation(HOSTWAIT_SECTION_CAPTURES, captures_, key, first);
  if (entry == nullptr) {
    mark(HOSTWAIT_RECORD_FULL);
    return;
  }
  add_shared(entry->count, seen.count);
  add_shared(entry->violations, seen.violations);
}

bool find_holder(const thread_writer* self, std::uint64_t since, std::uint64_t until,
                 unsigned least_rank, holder& out) noexcept {
  if (!alive() || until <= since) return false;
  unsigned best_rank = least_rank;
  std::uint64_t best = 0;
  const std::uint32_t count = sections_.of(HOSTWAIT_SECTION_THREADS).count();
  for (std::uint32_t i = 1; i < count; ++i) {
    const auto* t = entry_at<hostwait_record_thread>(HOSTWAIT_SECTION_THREADS, i);
    if (own(self) && t == self->entry) continue;
    // In this order: a call that is left between the two looks was remembered before.
    for (const stay& s : {in_progress(*t, until), last_long(*t)}) {
      const std::uint64_t shared = overlap(s, since, until);
      const unsigned rank = rank_of(s);
      if (shared * 2 < until - since || rank < best_rank || (rank == best_rank && shared <= best))
        continue;
      best_rank = rank;
      best = shared;
      out.call = s.call - 1;
      out.site_plus_1 = s.site_plus_1;
      out.thread = i;
      out.tid = load(t->tid);
      out.since_ns = s.since;
      load_name(*t, out.name);
    }
  }
  return best != 0;
}

void note_held(thread_writer* w, std::uint32_t site, const holder& who, std::uint64_t ns) noexcept {
  if (!own(w)) return;
  slow_path inside(page());
  if (!inside) {
    add_shared(sections_.header()->unseen_locks, std::uint64_t{1});
    return;
  }
  hostwait_record_holder first{};
  first.site = site;
  first.holder_call = who.call;
  first.holder_site = who.site_plus_1;
  first.holder_tid = who.tid;
  std::memcpy(first.holder_thread, who.name, sizeof first.holder_thread);
  const thread_identity me = identity_of_thread(w);
  first.tid = me.tid;
  std::memcpy(first.thread, me.name, sizeof first.thread);
  const std::uint64_t key = hash_of(both(site, who.call), who.tid, 0);
  auto* entry = relation(HOSTWAIT_SECTION_HOLDERS, holders_, key, first);
  if (entry == nullptr) {
    mark(HOSTWAIT_RECORD_FULL);
    return;
  }
  store(entry->holder_since_ns, who.since_ns);
  add_shared(entry->count, std::uint64_t{1});
  add_shared(entry->total_ns, ns);
  if (ns > load(entry->max_ns)) store(entry->max_ns, ns);
  if (load(entry->holder_site) != 0) return;
  // The holder may have ended its call since it was looked at, and then knows its site; or it
  // comes here later, and finds this entry: both happen under the lock.
  const auto* t = entry_at<hostwait_record_thread>(HOSTWAIT_SECTION_THREADS, who.thread);
  const stay ended = last_long(*t);
  if (ended.since == who.since_ns) {
    store(entry->holder_site, ended.site_plus_1);
  } else {
    without_site_.store(1, std::memory_order_seq_cst);
    // Looked at again: the holder may have come by between the two.
    const stay again = last_long(*t);
    if (again.since == who.since_ns) store(entry->holder_site, again.site_plus_1);
  }
}

void note_long_call(thread_writer* w, row_id row, std::uint32_t site, std::uint64_t since,
                    std::uint64_t until) noexcept {
  if (!own(w)) return;
  hostwait_record_thread& t = *w->entry;
  const std::uint32_t site_plus_1 = site == HOSTWAIT_CAPTURE_NO_SITE ? 0 : site + 1;
  store(t.long_since_ns, std::uint64_t{0});
  std::atomic_thread_fence(std::memory_order_release);
  store(t.long_until_ns, until);
  store(t.long_call, known_call(row));
  store(t.long_site, site_plus_1);
  publish(t.long_since_ns, since);
  std::atomic_thread_fence(std::memory_order_seq_cst);
  if (without_site_.load(std::memory_order_relaxed) == 0) return;
  slow_path inside(page());
  if (!inside) return;
  std::uint32_t left = 0;
  const std::uint32_t tid = load(t.tid);
  const std::uint32_t count = sections_.of(HOSTWAIT_SECTION_HOLDERS).count();
  for (std::uint32_t i = 0; i < count; ++i) {
    auto* entry = entry_at<hostwait_record_holder>(HOSTWAIT_SECTION_HOLDERS, i);
    if (load(entry->holder_site) != 0) continue;
    if (entry->holder_tid == tid && load(entry->holder_since_ns) == since)
      store(entry->holder_site, site_plus_1);
    else
      left = 1;
  }
  without_site_.store(left, std::memory_order_relaxed);
}

}  // namespace hostwait::record
