// SPDX-License-Identifier: Apache-2.0
// Copyright The hostwait authors
// What could not be seen, for the report's head: a bounded list without locks.
#include "resolve_internal.hpp"

namespace hostwait::resolve {

namespace {

struct entry {
  std::atomic<std::uint8_t> state;  // 0 free, 1 being written, 2 ready
  note what{};
  std::atomic<std::uint32_t> count;
  char name[64]{};
  char where[160]{};
};
constexpr unsigned capacity = 64;
constinit entry entries[capacity];
constinit std::atomic<std::uint32_t> left_out{0};
constinit std::atomic<std::uint32_t> routes{0};
constinit std::atomic<bool> is_blind{false};
constinit std::atomic<std::uint32_t> early{0};

// The end of a path says more than its beginning.
void copy_tail(char* to, std::size_t room, const char* from) noexcept {
  std::size_t n = 0;
  while (from[n] != '\0') ++n;
  if (n >= room) from += n - (room - 1);
  while ((*to++ = *from++) != '\0') {
  }
}

struct writer {
  char* out;
  std::size_t room, used = 0;
  void text(const char* s) noexcept {
    for (; *s != '\0' && used < room; ++s) out[used++] = *s;
  }
  void number(std::uint32_t n) noexcept {
    char digits[11];
    unsigned i = sizeof digits - 1;
    digits[i] = '\0';
    do {
      digits[--i] = static_cast<char>('0' + n % 10);
    } while ((n /= 10) != 0);
    text(digits + i);
  }
  void line() noexcept {
    if (used != 0) text("\n");
  }
};

// A copy in another namespace (dlmopen) has its own libc and its own dlsym: nothing of ours is in
// it. glibc 2.35 and later let a debugger, and us, find those namespaces.
bool other_namespace_with_driver(char* path, std::size_t room) noexcept {
  const r_debug* list = elf::loader_list();
  if (list == nullptr || list->r_version < 2) return false;
  struct extended {
    r_debug base;
    extended* next;
  };
  bool found = false;
  elf::for_each_module([&](const elf::module&) {
    // Under the list lock, which all namespaces share.
    for (const auto* n = reinterpret_cast<const extended*>(list)->next; n != nullptr && !found;
         n = n->next) {
      for (const link_map* m = n->base.r_map; m != nullptr; m = m->l_next) {
        elf::image in;
        if (!elf::open(m->l_addr, m->l_ld, in) || !is_driver(in)) continue;
        copy_tail(path, room, m->l_name);
        found = true;
        break;
      }
    }
    return true;
  });
  return found;
}

void describe(const entry& e, writer& to) noexcept {
  switch (e.what) {
    case note::unmapped:
      to.text(e.name);
      to.text(": ");
      to.number(e.count.load(std::memory_order_relaxed));
      to.text(" look-ups gave an unknown function in ");
      break;
    case note::deepbind_stripped:
      to.text("RTLD_DEEPBIND removed: ");
      break;
    case note::deepbind_kept:
      to.text("RTLD_DEEPBIND kept, look-ups unseen: ");
      break;
    case note::copy_beyond:
      to.text("one libcuda too many, calls unseen: ");
      break;
  }
  to.text(e.where);
}

}  // namespace

void seen(route by) noexcept {
  if ((routes.load(std::memory_order_relaxed) & by) == 0)
    routes.fetch_or(by, std::memory_order_relaxed);
}
std::uint32_t routes_seen() noexcept {
  return routes.load(std::memory_order_relaxed);
}

void note_early() noexcept {
  early.fetch_add(1, std::memory_order_relaxed);
}

void take_note(note what, const char* name, const char* where) noexcept {
  if (what != note::deepbind_stripped) is_blind.store(true, std::memory_order_relaxed);
  char short_name[sizeof entry::name], short_where[sizeof entry::where];
  copy_tail(short_name, sizeof short_name, name);
  copy_tail(short_where, sizeof short_where, where[0] != '\0' ? where : "the program");
  for (entry& e : entries) {
    std::uint8_t state = e.state.load(std::memory_order_acquire);
    if (state == 0 && e.state.compare_exchange_strong(state, 1, std::memory_order_acquire)) {
      e.what = what;
      copy_tail(e.name, sizeof e.name, short_name);
      copy_tail(e.where, sizeof e.where, short_where);
      e.count.store(1, std::memory_order_relaxed);
      e.state.store(2, std::memory_order_release);
      return;
    }
    if (state == 2 && e.what == what && elf::same(e.name, short_name) &&
        elf::same(e.where, short_where)) {
      e.count.fetch_add(1, std::memory_order_relaxed);
      return;
    }
  }
  left_out.fetch_add(1, std::memory_order_relaxed);
}

std::size_t describe_blind_spots(char* out, std::size_t room) noexcept {
  writer to{out, room};
  char path[sizeof entry::where];
  if (other_namespace_with_driver(path, sizeof path)) {
    is_blind.store(true, std::memory_order_relaxed);
    to.text("dlmopen: calls unseen in another namespace's ");
    to.text(path);
  }
  if (const std::uint32_t n = early.load(std::memory_order_relaxed); n != 0) {
    to.line();
    to.number(n);
    to.text(" look-ups by IFUNC resolvers at start-up gave functions whose calls are unseen");
  }
  // What makes blind comes first: the reader's room is small.
  for (const bool harmless : {false, true}) {
    for (const entry& e : entries) {
      if (e.state.load(std::memory_order_acquire) != 2) continue;
      if ((e.what == note::deepbind_stripped) != harmless) continue;
      to.line();
      describe(e, to);
    }
  }
  if (const std::uint32_t n = left_out.load(std::memory_order_relaxed); n != 0) {
    to.line();
    to.number(n);
    to.text(" more");
  }
  return to.used;
}

bool blind() noexcept {
  return is_blind.load(std::memory_order_relaxed) || early.load(std::memory_order_relaxed) != 0;
}

}  // namespace hostwait::resolve
