// SPDX-License-Identifier: Apache-2.0
// Copyright The hostwait authors
// The threads of a record: slots, each thread's table of known sites, folding of ended threads.
//
// How the end of a thread is noticed: by asking the kernel whether the thread id is still there,
// eight slots at each registration of a new thread. A destructor (thread_local, pthread key) would
// be told at once, but __cxa_thread_atexit_impl allocates and takes the loader's lock, which can
// block a first call made in a library's constructor or in a signal handler, keys are few, and
// neither sees threads made by a raw clone. A thread that ended and whose slot nobody needed yet
// keeps its name and its own counters in the report, which is more than the folded sum would say.
#include "record_threads.hpp"

#include <errno.h>
#include <sys/prctl.h>
#include <time.h>

#include <cstring>

#include "resolve.hpp"

namespace hostwait::record {

thread_local constinit own_slot own_slot_{};

namespace {

constinit thread_writer* writers_[max_threads]{};
constinit std::uint32_t tids_[max_threads]{};  // 0: the slot is free
constinit std::uint32_t next_look_ = 0;
constinit number_table pairs_{false};
constinit tally folded_other_{};

bool has_ended(std::uint32_t tid) noexcept {
  return sys::call(SYS_tgkill, sys::getpid(), static_cast<long>(tid), 0) == -ESRCH;
}

void move_counters(const tally& from, const tally& to) noexcept {
  hostwait_record_counters& f = *from.counters;
  hostwait_record_counters& t = *to.counters;
  add_shared(t.calls, load(f.calls));
  add_shared(t.waited, load(f.waited));
  add_saturating(t.latent, load(f.latent));
  add_saturating(t.refused, load(f.refused));
  add_saturating(t.held, load(f.held));
  add_saturating(t.violations, load(f.violations));
  add_shared(t.waited_ns, load(f.waited_ns));
  add_shared(t.total_ns, load(f.total_ns));
  if (load(f.max_ns) > load(t.max_ns)) store(t.max_ns, load(f.max_ns));
  for (unsigned i = 0; i < 32; ++i)
    add_shared(to.histogram->bucket[i], load(from.histogram->bucket[i]));
  store(f.calls, std::uint64_t{0});
  store(f.waited, std::uint64_t{0});
  store(f.latent, 0u);
  store(f.refused, 0u);
  store(f.held, 0u);
  store(f.violations, 0u);
  store(f.waited_ns, std::uint64_t{0});
  store(f.total_ns, std::uint64_t{0});
  store(f.max_ns, std::uint64_t{0});
  for (unsigned i = 0; i < 32; ++i) store(from.histogram->bucket[i], 0u);
}

tally tally_at(std::uint32_t number) noexcept {
  return {entry_at<hostwait_record_counters>(HOSTWAIT_SECTION_COUNTERS, number),
          entry_at<hostwait_record_histogram>(HOSTWAIT_SECTION_HISTOGRAMS, number)};
}

// Adds an ended thread's counters to entry 0. Its entries stay its slot's, marked as unused until
// the slot's next thread meets the same site: 10^5 short threads need no more than a few did.
void fold(thread_writer& ended) noexcept {
  std::uint64_t& sequence = sections_.header()->fold_sequence;
  next_in_sequence(sequence);
  for (std::uint32_t i = 0; i < ended.owned_count; ++i) {
    tally from = tally_at(ended.owned[i]);
    tally to;
    std::uint32_t site = load(from.counters->site);
    if (site == HOSTWAIT_COUNTERS_FREE) continue;
    if (site == other_site) {
      to = folded_other_;
    } else if (!pair(0, site, to)) {
      continue;  // no room: it goes on counting for this slot, and the sums stay right
    }
    move_counters(from, to);
    publish(from.counters->site, HOSTWAIT_COUNTERS_FREE);
  }
  auto* folded = entry_at<hostwait_record_thread>(HOSTWAIT_SECTION_THREADS, 0);
  add_shared(folded->allowed, load(ended.entry->allowed));
  add_shared(folded->recorded, load(ended.entry->recorded));
  store(ended.entry->allowed, std::uint64_t{0});
  store(ended.entry->recorded, std::uint64_t{0});
  store(ended.entry->in_call, 0u);
  store(ended.entry->in_call_since_ns, std::uint64_t{0});
  store(ended.entry->end_mono_ns, now_ns());
  publish(ended.entry->state, 2u);
  next_in_sequence(sequence);
  tids_[ended.index] = 0;
}

// The slot of an ended thread, or null.
thread_writer* reusable(std::uint32_t own_tid, std::uint32_t count) noexcept {
  thread_writer* free = nullptr;
  for (std::uint32_t i = 1; i < count; ++i) {
    if (tids_[i] == own_tid) fold(*writers_[i]);  // its number went on to us, so it has ended
    if (tids_[i] == 0) free = writers_[i];
  }
  for (unsigned look = 0; look < 8 && count > 1; ++look) {
    std::uint32_t i = 1 + next_look_++ % (count - 1);
    if (tids_[i] != 0 && has_ended(tids_[i])) {
      fold(*writers_[i]);
      free = writers_[i];
    }
  }
  return free;
}

thread_writer* fresh_slot() noexcept {
  std::uint32_t index = sections_.of(HOSTWAIT_SECTION_THREADS).count();
  if (index == max_threads) return nullptr;
  auto* entry = static_cast<hostwait_record_thread*>(sections_.next(HOSTWAIT_SECTION_THREADS));
  auto* writer = static_cast<thread_writer*>(allocate(sizeof(thread_writer)));
  if (entry == nullptr || writer == nullptr) return nullptr;
  writer->entry = entry;
  writer->index = index;
  writers_[index] = writer;
  sections_.publish_next(HOSTWAIT_SECTION_THREADS);  // state 0 until the thread is in it
  return writer;
}

thread_writer* register_thread() noexcept {
  slow_path inside(page());
  if (!inside || !alive()) return nullptr;
  auto tid = static_cast<std::uint32_t>(sys::gettid());
  thread_writer* writer = reusable(tid, sections_.of(HOSTWAIT_SECTION_THREADS).count());
  if (writer == nullptr) writer = fresh_slot();
  if (writer == nullptr) {
    mark(HOSTWAIT_RECORD_FULL);
    return nullptr;
  }
  writer->sites.take_over();
  writer->gap_since = 0;  // of the slot's last thread
  store(writer->generation, resolve::loader_generation());
  tally other;
  if (!pair(writer->index, other_site, other)) {
    mark(HOSTWAIT_RECORD_FULL);
    return nullptr;
  }
  if (writer->other.counters == nullptr) writer->other = other;
  hostwait_record_thread* entry = writer->entry;
  char name[16] = {};
  sys::call(SYS_prctl, PR_GET_NAME, reinterpret_cast<long>(name));
  store_name(*entry, name);
  store(entry->tid, tid);
  store(entry->start_mono_ns, now_ns());
  store(entry->end_mono_ns, std::uint64_t{0});
  store(entry->long_since_ns, std::uint64_t{0});  // of the slot's last thread
  publish(entry->state, 1u);
  tids_[writer->index] = tid;
  own_slot_ = {writer, current_open()};
  return writer;
}

}  // namespace

static_assert(offsetof(hostwait_record_thread, name) % 8 == 0);

void store_name(hostwait_record_thread& to, const char (&name)[16]) noexcept {
  std::uint64_t words[2];
  std::memcpy(words, name, sizeof words);
  auto* at = reinterpret_cast<std::uint64_t*>(to.name);
  store(at[0], words[0]);
  store(at[1], words[1]);
}

void load_name(const hostwait_record_thread& from, char (&name)[16]) noexcept {
  const auto* at = reinterpret_cast<const std::uint64_t*>(from.name);
  const std::uint64_t words[2] = {load(at[0]), load(at[1])};
  std::memcpy(name, words, sizeof name);
}

std::uint64_t now_ns() noexcept {
  timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return static_cast<std::uint64_t>(now.tv_sec) * 1000000000 +
         static_cast<std::uint64_t>(now.tv_nsec);
}

thread_writer* this_thread() noexcept {
  std::uint32_t open = current_open();
  if (open == 0) return nullptr;
  return own_slot_.open == open ? own_slot_.writer : register_thread();
}

bool pair(std::uint32_t thread, std::uint32_t site, tally& out) noexcept {
  std::uint64_t hash = hash_of(thread, site, 0);
  std::uint32_t known = pairs_.find(hash);
  if (known != number_table::absent) {
    out = tally_at(known);
    publish(out.counters->site, site);
    return true;
  }
  thread_writer* writer = writers_[thread];
  if (writer != nullptr && writer->owned_count == writer->owned_room) {
    std::uint32_t room = writer->owned_room == 0 ? 16 : writer->owned_room * 2;
    auto* more = static_cast<std::uint32_t*>(allocate(room * sizeof(std::uint32_t)));
    if (more == nullptr) return false;
    for (std::uint32_t i = 0; i < writer->owned_count; ++i) more[i] = writer->owned[i];
    writer->owned = more;
    writer->owned_room = room;
  }
  if (!pairs_.reserve()) return false;
  auto* counters =
      static_cast<hostwait_record_counters*>(sections_.next(HOSTWAIT_SECTION_COUNTERS));
  void* histogram = sections_.next(HOSTWAIT_SECTION_HISTOGRAMS);
  if (counters == nullptr || histogram == nullptr) return false;
  counters->thread = thread;
  counters->site = site;
  sections_.publish_next(HOSTWAIT_SECTION_HISTOGRAMS);
  std::uint32_t number = sections_.publish_next(HOSTWAIT_SECTION_COUNTERS);
  pairs_.insert(hash, number);
  if (writer != nullptr) writer->owned[writer->owned_count++] = number;
  out = tally_at(number);
  return true;
}

void open_threads() noexcept {
  auto* folded = static_cast<hostwait_record_thread*>(sections_.next(HOSTWAIT_SECTION_THREADS));
  std::memcpy(folded->name, "ended threads", 14);
  folded->state = 2;
  folded->start_mono_ns = now_ns();
  sections_.publish_next(HOSTWAIT_SECTION_THREADS);
  pair(0, other_site, folded_other_);
}

const tally& folded_other() noexcept {
  return folded_other_;
}

void forget_threads() noexcept {
  for (thread_writer*& writer : writers_) writer = nullptr;
  for (std::uint32_t& tid : tids_) tid = 0;
  pairs_.forget();
}

}  // namespace hostwait::record
