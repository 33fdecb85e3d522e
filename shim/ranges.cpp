// SPDX-License-Identifier: Apache-2.0
// Copyright The hostwait authors
// Open ranges.
#include "ranges.hpp"

#include <sys/mman.h>

#include <atomic>
#include <cstring>

#include "policy.hpp"
#include "record.hpp"
#include "state.hpp"

namespace hostwait::ranges {

namespace {

// Started ranges may end on another thread. A slot is free while its id is 0.
struct started {
  std::atomic<std::uint64_t> id;
  char name[name_bytes];
};
constexpr unsigned max_started = 32;
started process_ranges[max_started];
std::atomic<std::uint64_t> last_id{0};
// Slots in use, so that programs without started ranges do not look through them.
std::atomic<unsigned> slots_in_use{0};

// "domain:name", or "name" in the default domain; cut to the buffer.
void write_name(char (&out)[name_bytes], const char* domain_name, const char* name) noexcept {
  std::size_t n = 0;
  const auto add = [&](const char* text) noexcept {
    for (; text != nullptr && *text != '\0' && n + 1 < name_bytes; ++text) out[n++] = *text;
  };
  if (domain_name != nullptr && domain_name[0] != '\0') {
    add(domain_name);
    add(":");
  }
  add(name);
  out[n] = '\0';
}

stack* this_thread() noexcept {
  state::thread_block& t = state::tls;
  if (t.ranges == nullptr) {
    void* memory =
        mmap(nullptr, sizeof(stack), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) return nullptr;
    t.ranges = static_cast<stack*>(memory);
    state::register_thread_cleanup(t);
  }
  return t.ranges;
}

// A level limited to ranges has to be looked at anew.
void moved(stack& s) noexcept {
  s.path_known = false;
  if (state::settings().range[0] != '\0') state::tls.epoch = 0;
}

}  // namespace

int push(std::uint64_t domain, const char* domain_name, const char* name) noexcept {
  stack* s = this_thread();
  if (s == nullptr) return -1;
  if (s->depth == max_depth) return static_cast<int>(s->depth + s->beyond++);
  stack::range& r = s->open[s->depth];
  r.domain = domain;
  write_name(r.name, domain_name, name);
  moved(*s);
  return static_cast<int>(s->depth++);
}

int pop(std::uint64_t domain) noexcept {
  stack* s = state::tls.ranges;
  if (s == nullptr) return -1;
  if (s->beyond > 0) return static_cast<int>(s->depth + --s->beyond);
  // Domains nest independently of each other: the newest one of this domain ends.
  for (std::uint32_t i = s->depth; i > 0; --i) {
    if (s->open[i - 1].domain != domain) continue;
    std::memmove(&s->open[i - 1], &s->open[i], (s->depth - i) * sizeof(stack::range));
    --s->depth;
    moved(*s);
    return static_cast<int>(s->depth);
  }
  return -1;
}

std::uint64_t start(const char* domain_name, const char* name) noexcept {
  const std::uint64_t id = last_id.fetch_add(1, std::memory_order_relaxed) + 1;
  constexpr std::uint64_t being_written = ~std::uint64_t{0};
  for (started& slot : process_ranges) {
    std::uint64_t empty = 0;
    if (!slot.id.compare_exchange_strong(empty, being_written, std::memory_order_acquire)) continue;
    write_name(slot.name, domain_name, name);
    slot.id.store(id, std::memory_order_release);
    slots_in_use.fetch_add(1, std::memory_order_release);
    state::policy_epoch.fetch_add(1, std::memory_order_release);
    break;
  }
  return id;
}

void end(std::uint64_t id) noexcept {
  for (started& slot : process_ranges) {
    std::uint64_t expected = id;
    if (slot.id.compare_exchange_strong(expected, 0, std::memory_order_release)) {
      slots_in_use.fetch_sub(1, std::memory_order_release);
      state::policy_epoch.fetch_add(1, std::memory_order_release);
      return;
    }
  }
}

std::uint32_t current() noexcept {
  stack* s = state::tls.ranges;
  if (s == nullptr || s->depth == 0) {
    if (slots_in_use.load(std::memory_order_acquire) == 0) return 0;
    for (const started& slot : process_ranges) {
      const std::uint64_t id = slot.id.load(std::memory_order_acquire);
      if (id == 0 || id == ~std::uint64_t{0}) continue;
      char name[name_bytes];
      std::memcpy(name, slot.name, sizeof name);
      if (slot.id.load(std::memory_order_acquire) == id) return record::intern_range(name);
    }
    return 0;
  }
  if (s->path_known && s->path_record == record::epoch()) return s->path;
  char path[1024];
  std::size_t n = 0;
  for (std::uint32_t i = 0; i < s->depth; ++i) {
    const char* text = s->open[i].name;
    if (i != 0 && n + 1 < sizeof path) path[n++] = '/';
    for (; *text != '\0' && n + 1 < sizeof path; ++text) path[n++] = *text;
  }
  path[n] = '\0';
  s->path = record::intern_range(path);
  s->path_record = record::epoch();
  s->path_known = s->path != record::not_now;
  return s->path;
}

bool inside(const char* patterns) noexcept {
  if (const stack* s = state::tls.ranges; s != nullptr)
    for (std::uint32_t i = 0; i < s->depth; ++i)
      if (policy::matches_any(patterns, s->open[i].name)) return true;
  for (const started& slot : process_ranges) {
    const std::uint64_t id = slot.id.load(std::memory_order_acquire);
    if (id == 0 || id == ~std::uint64_t{0}) continue;
    char name[name_bytes];
    std::memcpy(name, slot.name, sizeof name);
    if (slot.id.load(std::memory_order_acquire) == id && policy::matches_any(patterns, name))
      return true;
  }
  return false;
}

}  // namespace hostwait::ranges
