// SPDX-License-Identifier: Apache-2.0
// Copyright The hostwait authors
// Private memory of the record's writer.
#include "record_memory.hpp"

#include <cstring>

#include "shortly.hpp"

namespace hostwait::record {

constinit std::atomic<wiped_page*> page_{nullptr};
constinit std::atomic<int> page_owner_{0};

namespace {

constexpr std::size_t page_bytes = 4096;
constexpr int wipe_on_fork = 18;  // MADV_WIPEONFORK, Linux 4.14

constexpr std::size_t slab_bytes = 64 * 1024;

struct arena {
  char* at;
  std::size_t left;
  std::atomic<std::size_t> mapped;
};
constinit arena arena_{};

std::size_t whole_pages(std::size_t bytes) noexcept {
  return (bytes + page_bytes - 1) & ~(page_bytes - 1);
}

}  // namespace

wiped_page* page() noexcept {
  wiped_page* known = page_.load(std::memory_order_acquire);
  if (known != nullptr) return known;
  auto* fresh = static_cast<wiped_page*>(sys::mmap_anonymous(page_bytes));
  if (fresh == nullptr) return nullptr;
  if (sys::madvise(fresh, page_bytes, wipe_on_fork) != 0)
    page_owner_.store(sys::getpid(), std::memory_order_relaxed);
  if (page_.compare_exchange_strong(known, fresh, std::memory_order_acq_rel)) return fresh;
  sys::munmap(fresh, page_bytes);
  return known;
}

slow_path::slow_path(wiped_page* p) noexcept : page_(p) {
  mask_ = sys::block_signals();
  if (forked_without_wipe()) {  // one thread only: what it finds in the page is its parent's
    page_owner_.store(sys::getpid(), std::memory_order_relaxed);
    p->alive.store(0, std::memory_order_relaxed);
    p->tried.store(0, std::memory_order_relaxed);
    p->locked.store(0, std::memory_order_relaxed);
  }
  held_ = shortly([p]() noexcept {
    std::uint32_t free = 0;
    return p->locked.load(std::memory_order_relaxed) == 0 &&
           p->locked.compare_exchange_strong(free, 1, std::memory_order_acquire);
  });
  if (!held_) sys::restore_signals(mask_);
}

slow_path::~slow_path() {
  if (!held_) return;
  page_->locked.store(0, std::memory_order_release);
  sys::restore_signals(mask_);
}

void* allocate_mapped(std::size_t bytes) noexcept {
  void* at = sys::mmap_anonymous(whole_pages(bytes));
  if (at != nullptr) arena_.mapped.fetch_add(whole_pages(bytes), std::memory_order_relaxed);
  return at;
}

void release_mapped(void* at, std::size_t bytes) noexcept {
  sys::munmap(at, whole_pages(bytes));
  arena_.mapped.fetch_sub(whole_pages(bytes), std::memory_order_relaxed);
}

void* allocate(std::size_t bytes) noexcept {
  bytes = (bytes + 63) & ~std::size_t{63};
  if (bytes > arena_.left) {
    std::size_t slab = bytes > slab_bytes / 2 ? whole_pages(bytes) : slab_bytes;
    void* at = allocate_mapped(slab);
    if (at == nullptr) return nullptr;
    if (slab != slab_bytes) return at;
    arena_.at = static_cast<char*>(at);
    arena_.left = slab;
  }
  void* result = arena_.at;
  arena_.at += bytes;
  arena_.left -= bytes;
  return result;
}

std::size_t private_bytes() noexcept {
  return arena_.mapped.load(std::memory_order_relaxed);
}

void forget_private_memory() noexcept {
  arena_.at = nullptr;
  arena_.left = 0;
  arena_.mapped.store(0, std::memory_order_relaxed);
}

std::uint64_t hash_of(const char* text, std::size_t size) noexcept {
  std::uint64_t hash = fold(size ^ salt_1, salt_2);
  for (; size >= 8; text += 8, size -= 8) {
    std::uint64_t word;
    std::memcpy(&word, text, 8);
    hash = fold(hash ^ word, salt_3) + word;
  }
  std::uint64_t rest = 0;
  std::memcpy(&rest, text, size);
  return (fold(hash ^ rest, salt_3) + rest) | 1;
}

number_table::table* number_table::make(std::uint64_t places) noexcept {
  std::size_t bytes = sizeof(table) + (places - 1) * sizeof(place);
  auto* fresh = static_cast<table*>(allocate_mapped(bytes));
  if (fresh == nullptr) return nullptr;
  fresh->bytes = bytes;
  fresh->mask = places - 1;
  return fresh;
}

void number_table::put(table* into, std::uint64_t hash, std::uint32_t number) noexcept {
  std::uint64_t i = (hash >> 20) & into->mask;
  while (into->places[i].hash.load(std::memory_order_relaxed) != 0) i = (i + 1) & into->mask;
  into->places[i].number.store(number, std::memory_order_relaxed);
  into->places[i].hash.store(hash, std::memory_order_release);
}

std::uint32_t number_table::find(std::uint64_t hash) const noexcept {
  const table* from = table_.load(std::memory_order_acquire);
  if (from == nullptr) return absent;
  for (std::uint64_t i = (hash >> 20) & from->mask;; i = (i + 1) & from->mask) {
    std::uint64_t here = from->places[i].hash.load(std::memory_order_acquire);
    if (here == hash) return from->places[i].number.load(std::memory_order_relaxed);
    if (here == 0) return absent;
  }
}

bool number_table::reserve() noexcept {
  table* now = table_.load(std::memory_order_relaxed);
  if (now != nullptr && (used_ + 1) * 4 <= (now->mask + 1) * 3) return true;
  table* larger = make(now == nullptr ? 128 : (now->mask + 1) * 2);
  if (larger == nullptr) return now != nullptr && used_ + 1 <= now->mask;  // one place stays empty
  if (now != nullptr) {
    for (std::uint64_t i = 0; i <= now->mask; ++i) {
      std::uint64_t hash = now->places[i].hash.load(std::memory_order_relaxed);
      if (hash != 0) put(larger, hash, now->places[i].number.load(std::memory_order_relaxed));
    }
  }
  if (keep_) larger->outgrown = now;
  table_.store(larger, std::memory_order_release);
  if (!keep_ && now != nullptr) release_mapped(now, now->bytes);
  return true;
}

void number_table::insert(std::uint64_t hash, std::uint32_t number) noexcept {
  put(table_.load(std::memory_order_relaxed), hash, number);
  ++used_;
}

void number_table::forget() noexcept {
  table_.store(nullptr, std::memory_order_relaxed);
  used_ = 0;
}

}  // namespace hostwait::record
