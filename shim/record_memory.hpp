// SPDX-License-Identifier: Apache-2.0
// Copyright The hostwait authors
// Private memory of the record's writer: the page that a fork wipes, the try-lock in it, an arena
// of mapped slabs, and hash tables from a 64-bit hash to a number.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "sys.hpp"

namespace hostwait::record {

// One page with MADV_WIPEONFORK: in a forked or raw-cloned child every word reads 0, so that the
// child neither takes the parent's record for its own nor inherits a lock that some other thread
// held. Where the kernel lacks the advice, the process id is compared (one system call a look).
struct wiped_page {
  // Number of the open (from 1, in this process and its ancestors) while the record of this very
  // process is open, else 0.
  std::atomic<std::uint32_t> alive;
  std::atomic<std::uint32_t> locked;  // 1: a thread is inside the slow path
  std::atomic<std::uint32_t> tried;   // 1: opening was tried, and is not tried again
};

// Null until the first use; then constant for the life of the process, children included.
extern std::atomic<wiped_page*> page_;
extern std::atomic<int> page_owner_;  // process id where the page is not wiped by the kernel, or 0

wiped_page* page() noexcept;  // creates it; null where memory is out

inline bool forked_without_wipe() noexcept {
  int owner = page_owner_.load(std::memory_order_relaxed);
  return owner != 0 && owner != sys::getpid();
}

inline constexpr std::uint32_t compare_process = 0x80000000u;  // in `alive`: the page is not wiped

// The word that is checked before each write: 0, or the number of the open.
inline std::uint32_t current_open() noexcept {
  wiped_page* p = page_.load(std::memory_order_acquire);
  if (p == nullptr) return 0;
  std::uint32_t open = p->alive.load(std::memory_order_acquire);
  return (open & compare_process) != 0 && forked_without_wipe() ? 0 : open;
}
inline bool alive() noexcept {
  return current_open() != 0;
}

// The slow path's only lock. It is tried a bounded number of times and given up: no thread ever
// waits for another without end. All signals of the holder are blocked meanwhile, so that no
// handler finds its own thread in here, jumps out of it or forks inside.
class slow_path {
 public:
  explicit slow_path(wiped_page* p) noexcept;
  ~slow_path();
  slow_path(const slow_path&) = delete;
  slow_path& operator=(const slow_path&) = delete;
  explicit operator bool() const noexcept { return held_; }

 private:
  wiped_page* page_;
  std::uint64_t mask_ = 0;
  bool held_ = false;
};

// Zeroed memory, never given back singly; null where memory is out. Under the lock.
void* allocate(std::size_t bytes) noexcept;
// Memory of its own mapping, for tables that are replaced by larger ones.
void* allocate_mapped(std::size_t bytes) noexcept;
void release_mapped(void* at, std::size_t bytes) noexcept;
std::size_t private_bytes() noexcept;
// In a forked child. Nothing is unmapped: some other thread of the parent may have been amid a
// change, and pages that nobody touches cost the child nothing.
void forget_private_memory() noexcept;

inline std::uint64_t fold(std::uint64_t a, std::uint64_t b) noexcept {
  unsigned __int128 product = static_cast<unsigned __int128>(a) * b;
  return static_cast<std::uint64_t>(product) ^ static_cast<std::uint64_t>(product >> 64);
}

inline constexpr std::uint64_t salt_1 = 0x9e3779b97f4a7c15, salt_2 = 0xd6e8feb86659fd93,
                               salt_3 = 0xa0761d6478bd642f;

// 64 bits over three words; never 0, which marks an empty place.
inline std::uint64_t hash_of(std::uint64_t a, std::uint64_t b, std::uint64_t c) noexcept {
  return fold(fold(fold(a ^ salt_1, salt_2) + b, salt_3) ^ c, salt_1) | 1;
}
std::uint64_t hash_of(const char* text, std::size_t size) noexcept;

// Identity of a site in a thread's table: two independent lanes, so that equality of the 128 bits
// is taken for equality of the key.
struct hash128 {
  std::uint64_t a = salt_1, b = salt_2;
  void add(std::uint64_t word) noexcept {
    a = fold(a ^ word, salt_3) + word;
    b = fold((b << 29 | b >> 35) + word, salt_1) ^ word;
  }
};

// From a 64-bit hash to a number. Inserts happen under the lock; find() needs none and may run
// beside an insert. Equal hashes are taken for equal keys: with a million entries the chance of a
// mix-up is below one in ten million.
class number_table {
 public:
  static constexpr std::uint32_t absent = 0xffffffffu;
  // keep: an outgrown table stays readable (for tables that find() reads without the lock).
  constexpr explicit number_table(bool keep) noexcept : keep_(keep) {}
  std::uint32_t find(std::uint64_t hash) const noexcept;
  bool reserve() noexcept;                                         // makes room for one insert
  void insert(std::uint64_t hash, std::uint32_t number) noexcept;  // after reserve() said yes
  void forget() noexcept;                                          // in a forked child

 private:
  struct place {
    std::atomic<std::uint64_t> hash;
    std::atomic<std::uint32_t> number;
  };
  struct table {
    std::size_t bytes;
    table* outgrown;
    std::uint64_t mask;
    place places[1];
  };
  static table* make(std::uint64_t places) noexcept;
  static void put(table*, std::uint64_t hash, std::uint32_t number) noexcept;
  std::atomic<table*> table_{nullptr};
  std::uint64_t used_ = 0;
  bool keep_;
};

}  // namespace hostwait::record
