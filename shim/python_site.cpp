// SPDX-License-Identifier: Apache-2.0
// Copyright The hostwait authors
// Interning of Python stacks, with a cache over the raw addresses.
#include "python_site.hpp"

#include <sys/mman.h>

#include <atomic>

#include "python_stack.hpp"
#include "record.hpp"

namespace hostwait::python {

namespace {

constexpr unsigned max_frames = 64;

// Direct-mapped. `value` repeats 32 bits of a second hash beside the frame id, so that a reader
// that meets a writer half-way sees a mismatch, not a wrong stack.
struct entry {
  std::atomic<std::uint64_t> key;
  std::atomic<std::uint64_t> value;
};
constexpr std::size_t entries = 4096;

std::atomic<entry*> the_cache{nullptr};

// Wiped in a forked child, whose record numbers its frames anew.
entry* cache() noexcept {
  entry* known = the_cache.load(std::memory_order_acquire);
  if (known != nullptr) return known;
  void* memory = mmap(nullptr, sizeof(entry) * entries, PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) return nullptr;
#ifndef MADV_WIPEONFORK
#define MADV_WIPEONFORK 18
#endif
  if (madvise(memory, sizeof(entry) * entries, MADV_WIPEONFORK) != 0) {
    munmap(memory, sizeof(entry) * entries);
    return nullptr;
  }
  if (!the_cache.compare_exchange_strong(known, static_cast<entry*>(memory)))
    munmap(memory, sizeof(entry) * entries);
  return the_cache.load(std::memory_order_acquire);
}

std::uint32_t intern(const raw_frame* frames, unsigned count) noexcept {
  std::uint32_t node = 0;
  for (unsigned i = count; i > 0; --i) {
    frame_text text;
    describe(frames[i - 1], text);
    const std::uint32_t code =
        record::intern_python_code(text.file, text.qualname, text.first_line);
    if (code == record::not_now) return code;
    node = record::intern_python(node, code, text.line);
    if (node == record::not_now) return node;
  }
  return node;
}

}  // namespace

std::uint32_t record_stack(unsigned limit) noexcept {
  raw_frame frames[max_frames];
  const unsigned count = capture(frames, limit < max_frames ? limit : max_frames);
  if (const char* text = note(); text[0] != '\0') {
    // Once per record: a forked child has its own.
    static std::atomic<std::uint32_t> told{0};
    if (const std::uint32_t now = record::epoch();
        told.load(std::memory_order_relaxed) != now && record::set_python_note(text))
      told.store(now, std::memory_order_relaxed);
  }
  if (count == not_found_yet) return record::not_now;
  if (count == 0) return 0;
  std::uint64_t a = count, b = 0x1234567u;
  for (unsigned i = 0; i < count; ++i) {
    a = mix(mix(a, frames[i].code), frames[i].instruction);
    b = mix(mix(b, frames[i].code ^ frames[i].instruction), frames[i].identity);
  }
  entry* table = cache();
  if (table == nullptr) return intern(frames, count);
  entry& slot = table[a % entries];
  const std::uint64_t check = b << 32;
  const std::uint64_t value = slot.value.load(std::memory_order_acquire);
  if (slot.key.load(std::memory_order_relaxed) == a && (value & ~0xffffffffull) == check &&
      static_cast<std::uint32_t>(value) != 0)
    return static_cast<std::uint32_t>(value);
  const std::uint32_t node = intern(frames, count);
  if (node != 0 && node != record::not_now) {
    slot.key.store(a, std::memory_order_relaxed);
    slot.value.store(check | node, std::memory_order_release);
  }
  return node;
}

}  // namespace hostwait::python
