// SPDX-License-Identifier: Apache-2.0
// Copyright The hostwait authors
// The threads of a record: slots, each thread's table of known sites, folding of ended threads.
#pragma once

#include "record.hpp"
#include "record_store.hpp"

namespace hostwait::record {

// A thread's known sites. Read and changed by its own thread only (changed under the lock, with
// signals blocked, so that a handler on this thread finds it whole).
class site_table {
 public:
  // The loads are atomic for the slot's next thread only: the kernel's word that the last one has
  // ended is an order that no tool can see.
  tally find(const hash128& key) const noexcept {  // null pointers: not known
    const table* from = table_;
    if (from == nullptr) return {};
    for (std::uint64_t i = (key.a >> 20) & from->mask;; i = (i + 1) & from->mask) {
      const place& here = from->places[i];
      tally to{load(here.to.counters), load(here.to.histogram)};
      if (to.counters == nullptr || (load(here.a) == key.a && load(here.b) == key.b)) return to;
    }
  }
  bool insert(const hash128& key, const tally& to) noexcept;
  void clear() noexcept;      // keeps the room
  void take_over() noexcept;  // a new thread in the slot: also gives outgrown tables back

 private:
  struct place {
    std::uint64_t a, b;
    tally to;
  };
  struct table {
    std::size_t bytes;
    table* outgrown;  // kept: a handler may have grown the table amid the find() it interrupted
    std::uint64_t mask, used;
    place places[1];
  };
  static void put(table*, const hash128&, const tally&) noexcept;
  table* table_ = nullptr;
};

// Private, one per slot, and like the slot used again after its thread has ended.
struct thread_writer {
  hostwait_record_thread* entry;
  std::uint32_t index;
  std::uint32_t generation;  // of the loader, for which `sites` holds
  tally other;
  site_table sites;
  std::uint32_t* owned;  // numbers of the counters entries of this slot, for folding
  std::uint32_t owned_count, owned_room;
  tally gap;                // where the gap that is open counts
  std::uint64_t gap_since;  // 0: none is open
};

inline constexpr std::uint32_t max_threads = 4096;
inline constexpr std::uint32_t other_site = 0;

// A writer found in thread-local storage is valid only for the open that made it: not after a fork.
struct own_slot {
  thread_writer* writer;
  std::uint32_t open;
};
extern thread_local constinit own_slot own_slot_;
inline bool own(const thread_writer* w) noexcept {
  return w != nullptr && w == own_slot_.writer && own_slot_.open == current_open();
}

// Under the lock. The counters of (thread, site); false where there is no room.
bool pair(std::uint32_t thread, std::uint32_t site, tally& out) noexcept;
unsigned bucket_of(std::uint64_t ns) noexcept;  // of a histogram
void open_threads() noexcept;  // makes entry 0 and its counters of the "other" site
const tally& folded_other() noexcept;
void forget_threads() noexcept;  // in a forked child

// A thread's name in its slot, which other threads read: whole words.
void store_name(hostwait_record_thread& to, const char (&name)[16]) noexcept;
void load_name(const hostwait_record_thread& from, char (&name)[16]) noexcept;

std::uint64_t now_ns() noexcept;  // CLOCK_MONOTONIC

void set_max_sites(std::uint32_t limit) noexcept;  // 0: default_max_sites
void forget_sites() noexcept;                      // in a forked child
void forget_relations() noexcept;                  // captures and holders, in a forked child

}  // namespace hostwait::record
