// SPDX-License-Identifier: Apache-2.0
// Copyright The hostwait authors
// The sections of an open record: entries by number, growth by whole extents, interned values.
// Everything that changes the store is called under slow_path (record_memory.hpp); what may be
// called without it says so.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "hostwait/record.h"
#include "record_file.hpp"
#include "record_memory.hpp"
#include "row.hpp"

namespace hostwait::record {

// Words of the mapping that a reader of the live file, or another thread, may look at meanwhile.
template <class T>
T load(const T& from) noexcept {
  return std::atomic_ref<T>(const_cast<T&>(from)).load(std::memory_order_relaxed);
}
template <class T>
void store(T& to, T value) noexcept {
  std::atomic_ref<T>(to).store(value, std::memory_order_relaxed);
}
template <class T>
void publish(T& to, T value) noexcept {
  std::atomic_ref<T>(to).store(value, std::memory_order_release);
}
template <class T>
void add_shared(T& to, T more) noexcept {
  std::atomic_ref<T>(to).fetch_add(more, std::memory_order_relaxed);
}
// For the 32-bit counters with many writers.
inline void add_saturating(std::uint32_t& to, std::uint32_t more) noexcept {
  std::atomic_ref<std::uint32_t> shared(to);
  std::uint32_t before = shared.load(std::memory_order_relaxed), after;
  do {
    after = before > 0xffffffffu - more ? 0xffffffffu : before + more;
  } while (!shared.compare_exchange_weak(before, after, std::memory_order_relaxed));
}

// For counts of changes: no load or store moves over it, in either direction.
inline std::uint64_t next_in_sequence(std::uint64_t& of, std::uint64_t by = 1) noexcept {
  return std::atomic_ref<std::uint64_t>(of).fetch_add(by, std::memory_order_acq_rel);
}

// The name is the section's; the extents of one section, in order.
class section {
 public:
  static constexpr unsigned max_parts = 40;
  struct part {
    char* base;
    std::uint32_t first, capacity, extent;
  };
  // Both without the lock: entries below count() are published.
  void* at(std::uint32_t index) const noexcept;
  std::uint32_t count() const noexcept { return count_.load(std::memory_order_acquire); }

 private:
  friend class sections;
  part parts_[max_parts]{};
  std::atomic<std::uint32_t> part_count_{0}, count_{0};
  std::uint32_t entry_bytes_ = 0, capacity_ = 0;
};

class sections {
 public:
  static constexpr unsigned ids = HOSTWAIT_SECTION_HOLDERS + 1;

  // Makes the file with room for a small program in every section. False: no memory.
  bool open(const char* output_dir) noexcept;
  void forget() noexcept;  // in a forked child

  hostwait_record_header* header() const noexcept { return header_; }
  live_file& file() noexcept { return file_; }
  const section& of(unsigned id) const noexcept { return sections_[id]; }

  // The next entry of a section, zeroed and not yet visible; null where there is no room. publish()
  // makes it visible and gives its number.
  void* next(unsigned id) noexcept;
  std::uint32_t publish_next(unsigned id) noexcept;
  // Room for `bytes` of text in one extent; null where there is none.
  char* next_text(std::uint32_t bytes) noexcept;
  std::uint32_t publish_text(std::uint32_t bytes) noexcept;

 private:
  bool grow(unsigned id, std::uint32_t at_least) noexcept;
  bool add_part(unsigned id, char* base, std::uint64_t offset, std::uint32_t capacity) noexcept;
  void move_count(section& of, std::uint32_t by) noexcept;

  live_file file_;
  hostwait_record_header* header_ = nullptr;
  section sections_[ids]{};
};
extern sections sections_;

template <class Entry>
Entry* entry_at(unsigned id, std::uint32_t index) noexcept {
  return static_cast<Entry*>(sections_.of(id).at(index));
}

// Interned values, under the lock. 0 (the empty text, the root frame) where there is no room; the
// record is then marked as full.
std::uint32_t text_number(const char* text, std::size_t size) noexcept;
std::uint32_t frame_number(std::uint32_t parent, std::uint64_t where,
                           std::uint32_t module) noexcept;
// Only looks: number_table::absent if that frame is not known.
std::uint32_t known_frame(std::uint32_t parent, std::uint64_t where, std::uint32_t module) noexcept;
std::uint32_t module_of(std::uintptr_t address, std::uint32_t generation) noexcept;

// Index into calls plus 1; 0 where there is no room. known_call needs no lock.
std::uint32_t known_call(row_id row) noexcept;
std::uint32_t call_number(row_id row) noexcept;

void mark(std::uint32_t flags) noexcept;  // without the lock
void forget_interned() noexcept;          // in a forked child
void forget_modules() noexcept;

}  // namespace hostwait::record
