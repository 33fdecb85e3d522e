// SPDX-License-Identifier: Apache-2.0
// Copyright The hostwait authors
// The sections of an open record: entries by number and growth by whole extents.
#include "record_store.hpp"

#include <cstring>

namespace hostwait::record {

constinit sections sections_{};

namespace {

// First extents: all in the first 32 KiB of the file, so that a process with a few sites stays
// small and the first open is one mapping. Thread entries take two cache lines (a longer entry than
// the format's struct is allowed): every call writes its thread's entry.
struct first_extent {
  unsigned id;
  std::uint32_t entry_bytes, capacity;
};
constexpr first_extent first_extents[] = {
    {HOSTWAIT_SECTION_CONTROL, sizeof(hostwait_record_control), 1},
    {HOSTWAIT_SECTION_CALLS, sizeof(hostwait_record_call), 64},
    {HOSTWAIT_SECTION_THREADS, 128, 16},
    {HOSTWAIT_SECTION_SITES, sizeof(hostwait_record_site), 32},
    {HOSTWAIT_SECTION_COUNTERS, sizeof(hostwait_record_counters), 32},
    {HOSTWAIT_SECTION_HISTOGRAMS, sizeof(hostwait_record_histogram), 32},
    {HOSTWAIT_SECTION_FRAMES, sizeof(hostwait_record_frame), 256},
    {HOSTWAIT_SECTION_MODULES, sizeof(hostwait_record_module), 16},
    {HOSTWAIT_SECTION_PYTHON_CODE, sizeof(hostwait_record_python_code), 32},
    {HOSTWAIT_SECTION_RANGES, sizeof(hostwait_record_range), 16},
    {HOSTWAIT_SECTION_STRINGS, 1, 5120},
    {HOSTWAIT_SECTION_STEPS, sizeof(hostwait_record_step), 0},
    {HOSTWAIT_SECTION_CAPTURES, sizeof(hostwait_record_capture), 0},
    {HOSTWAIT_SECTION_HOLDERS, sizeof(hostwait_record_holder), 0},
};
static_assert(sizeof(hostwait_record_thread) <= 128);
static_assert(sizeof(hostwait_record_header) <= HOSTWAIT_RECORD_HEADER_BYTES);
static_assert(sizeof(hostwait_record_counters) == 64 && sizeof(hostwait_record_histogram) == 128,
              "a (thread, site) pair is three whole cache lines");

constexpr std::uint64_t whole(std::uint64_t bytes, std::uint64_t unit) noexcept {
  return (bytes + unit - 1) / unit * unit;
}

constexpr std::uint64_t first_bytes() noexcept {
  std::uint64_t bytes = HOSTWAIT_RECORD_HEADER_BYTES;
  for (const auto& first : first_extents)
    bytes += whole(std::uint64_t{first.entry_bytes} * first.capacity, 64);
  return bytes;
}
static_assert(first_bytes() <= 32 * 1024);

// The share by which a section grows: it doubles while small, then wastes at most a fifth, and
// doubles again where a hundred extents would not do.
std::uint64_t next_bytes(std::uint64_t now, std::uint32_t extents_used) noexcept {
  bool few_left = extents_used > 90;
  if (now < 256 * 1024 || now >= 8 * 1024 * 1024 || few_left) return now;
  return now / 4;
}

}  // namespace

void* section::at(std::uint32_t index) const noexcept {
  for (std::uint32_t i = part_count_.load(std::memory_order_acquire); i-- != 0;) {
    const part& p = parts_[i];
    if (index >= p.first) return p.base + std::size_t{index - p.first} * entry_bytes_;
  }
  return nullptr;
}

bool sections::open(const char* output_dir) noexcept {
  std::size_t bytes = whole(first_bytes(), system_page_bytes());
  auto* base = static_cast<char*>(file_.create(output_dir, bytes));
  if (base == nullptr) return false;
  header_ = reinterpret_cast<hostwait_record_header*>(base);
  header_->max_extents = HOSTWAIT_RECORD_MAX_EXTENTS;
  std::uint64_t offset = HOSTWAIT_RECORD_HEADER_BYTES;
  for (const auto& first : first_extents) {
    sections_[first.id].entry_bytes_ = first.entry_bytes;
    if (first.capacity == 0) continue;
    add_part(first.id, base + offset, offset, first.capacity);
    offset += whole(std::uint64_t{first.entry_bytes} * first.capacity, 64);
  }
  header_->file_bytes = file_.bytes();
  return true;
}

bool sections::add_part(unsigned id, char* base, std::uint64_t offset,
                        std::uint32_t capacity) noexcept {
  section& into = sections_[id];
  std::uint32_t part = into.part_count_.load(std::memory_order_relaxed);
  std::uint32_t extent = header_->extent_count;
  if (part == section::max_parts || extent == HOSTWAIT_RECORD_MAX_EXTENTS) return false;
  into.parts_[part] = {base, into.capacity_, capacity, extent};
  into.capacity_ += capacity;
  into.part_count_.store(part + 1, std::memory_order_release);
  header_->extents[extent] = {id, into.entry_bytes_, offset, 0, capacity};
  record::publish(header_->extent_count, extent + 1);
  return true;
}

bool sections::grow(unsigned id, std::uint32_t at_least) noexcept {
  section& of = sections_[id];
  // Looked at first: a mapping without an entry in the table would be lost room.
  if (of.part_count_.load(std::memory_order_relaxed) == section::max_parts ||
      header_->extent_count == HOSTWAIT_RECORD_MAX_EXTENTS)
    return false;
  std::uint64_t bytes =
      next_bytes(std::uint64_t{of.capacity_} * of.entry_bytes_, header_->extent_count);
  std::uint64_t needed = std::uint64_t{at_least} * of.entry_bytes_;
  bytes = whole(bytes < needed ? needed : bytes, system_page_bytes());
  std::uint64_t offset;
  auto* base = static_cast<char*>(file_.grow(bytes, &offset));
  if (base == nullptr) return false;
  record::store(header_->file_bytes, file_.bytes());
  return add_part(id, base, offset, static_cast<std::uint32_t>(bytes / of.entry_bytes_));
}

void sections::move_count(section& of, std::uint32_t by) noexcept {
  std::uint32_t before = of.count_.load(std::memory_order_relaxed);
  const section::part* p = of.parts_;
  while (before >= p->first + p->capacity) ++p;
  record::publish(header_->extents[p->extent].count, before - p->first + by);
  of.count_.store(before + by, std::memory_order_release);
}

void* sections::next(unsigned id) noexcept {
  section& of = sections_[id];
  std::uint32_t count = of.count_.load(std::memory_order_relaxed);
  if (count == of.capacity_ && !grow(id, 1)) return nullptr;
  return of.at(count);
}

std::uint32_t sections::publish_next(unsigned id) noexcept {
  std::uint32_t number = sections_[id].count_.load(std::memory_order_relaxed);
  move_count(sections_[id], 1);
  return number;
}

char* sections::next_text(std::uint32_t bytes) noexcept {
  section& of = sections_[HOSTWAIT_SECTION_STRINGS];
  std::uint32_t left = of.capacity_ - of.count_.load(std::memory_order_relaxed);
  if (left < bytes) {
    if (!grow(HOSTWAIT_SECTION_STRINGS, bytes)) return nullptr;
    if (left != 0) move_count(of, left);  // a text lies in one extent: the rest stays zeros
  }
  return static_cast<char*>(of.at(of.count_.load(std::memory_order_relaxed)));
}

std::uint32_t sections::publish_text(std::uint32_t bytes) noexcept {
  section& of = sections_[HOSTWAIT_SECTION_STRINGS];
  std::uint32_t number = of.count_.load(std::memory_order_relaxed);
  move_count(of, bytes);
  return number;
}

void sections::forget() noexcept {
  file_.forget();
  header_ = nullptr;
  for (section& one : sections_) {
    one.part_count_.store(0, std::memory_order_relaxed);
    one.count_.store(0, std::memory_order_relaxed);
    one.capacity_ = 0;
  }
}

}  // namespace hostwait::record
