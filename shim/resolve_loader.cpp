// SPDX-License-Identifier: Apache-2.0
// Copyright The hostwait authors
// libc's own symbols, the next definitions of the dl* functions, loads and unloads.
#include "resolve_internal.hpp"

extern "C" {
void* hostwait_next_dlsym;
void* hostwait_next_dlvsym;
void* hostwait_next_dlopen;
void* hostwait_next_dlclose;
std::uint32_t hostwait_dl_attention = hostwait::resolve::attention_next;
}

namespace hostwait::resolve {

namespace {

constinit std::atomic<std::uint32_t> generation{1};
constinit std::atomic<std::uint32_t> unloads{0};
constinit std::atomic<unsigned> objects_at_start{0};
constinit std::atomic<bool> link_object_present{false};
constinit std::atomic<bool> wants_link_route{true};
constinit std::atomic<bool> wants_strip{true};

bool libc_part(const char* soname) noexcept {
  return elf::begins(soname, "libc.so") || elf::begins(soname, "ld-linux") ||
         elf::begins(soname, "libdl.so") || elf::begins(soname, "libpthread.so") ||
         elf::begins(soname, "librt.so");
}

// Visits the head of the loader's list without a lock: those objects stay. In a process where the
// early pass has not run (unit tests, a late dlopen of ourselves) it is the whole list.
template <class Visit>
bool for_each_at_start(Visit&& visit) noexcept {
  const r_debug* list = elf::loader_list();
  if (list == nullptr) return false;
  const unsigned limit = startup_count();
  unsigned i = 0;
  for (const link_map* m = list->r_map; m != nullptr && (limit == 0 || i < limit);
       m = m->l_next, ++i) {
    elf::image in;
    if (elf::open(m->l_addr, m->l_ld, in) && visit(in)) return true;
  }
  return false;
}

bool take_one(const elf::image& in, const char* name, void** where) noexcept {
  if (__atomic_load_n(where, __ATOMIC_RELAXED) != nullptr) return true;
  const auto* symbol = elf::find(in, name);
  if (symbol == nullptr || ELF64_ST_TYPE(symbol->st_info) != STT_FUNC) return false;
  __atomic_store_n(where, elf::address(in, *symbol), __ATOMIC_RELEASE);
  return true;
}

// Takes the definitions of one object that are still missing. Four calls and no table: this also
// runs before our relocations, and compilers copy the initializer of a local table from memory.
bool take(const elf::image& in) noexcept {
  const bool sym = take_one(in, "dlsym", &hostwait_next_dlsym);
  const bool vsym = take_one(in, "dlvsym", &hostwait_next_dlvsym);
  const bool load = take_one(in, "dlopen", &hostwait_next_dlopen);
  const bool unload = take_one(in, "dlclose", &hostwait_next_dlclose);
  return sym && vsym && load && unload;
}

}  // namespace

void* libc_symbol(const char* name) noexcept {
  void* found = nullptr;
  for_each_at_start([&](const elf::image& in) {
    if (!libc_part(in.soname)) return false;
    const auto* symbol = elf::find(in, name);
    if (symbol == nullptr) return false;
    found = elf::address(in, *symbol);
    return true;
  });
  return found;
}

void find_next() noexcept {
  bool behind = false;
  bool complete = for_each_at_start([&](const elf::image& in) {
    if (in.dynamic == elf::own_dynamic()) {
      behind = true;
      return false;
    }
    return behind && take(in);
  });
  // Before glibc 2.34 they live in libdl, which may come with a later dlopen.
  if (!complete && elf::relocated()) {
    complete = elf::for_each_module([&](const elf::module& m) {
      elf::image in;
      return m.dynamic != elf::own_dynamic() && elf::open(m.bias, m.dynamic, in) &&
             libc_part(in.soname) && take(in);
    });
  }
  if (complete) __atomic_fetch_and(&hostwait_dl_attention, ~attention_next, __ATOMIC_ACQ_REL);
}

unsigned startup_count() noexcept {
  return objects_at_start.load(std::memory_order_relaxed);
}

void note_startup() noexcept {
  unsigned count = 0;
  const r_debug* list = elf::loader_list();
  for (const link_map* m = list != nullptr ? list->r_map : nullptr; m != nullptr; m = m->l_next) {
    elf::image in;
    if (elf::open(m->l_addr, m->l_ld, in) && elf::same(in.soname, "libhostwait_link.so"))
      link_object_present.store(true, std::memory_order_relaxed);
    ++count;
  }
  objects_at_start.store(count, std::memory_order_relaxed);
}

bool link_route() noexcept {
  return link_object_present.load(std::memory_order_relaxed) &&
         wants_link_route.load(std::memory_order_relaxed);
}

bool strip_deepbind() noexcept {
  return wants_strip.load(std::memory_order_relaxed);
}

void configure(const settings& set) noexcept {
  wants_link_route.store(set.link_route, std::memory_order_relaxed);
  wants_strip.store(set.strip_deepbind, std::memory_order_relaxed);
}

std::uint32_t loader_generation() noexcept {
  return generation.load(std::memory_order_acquire);
}
// Also says that links are to be looked at.
void note_load() noexcept {
  generation.fetch_add(1, std::memory_order_acq_rel);
  __atomic_fetch_or(&hostwait_dl_attention, attention_modules, __ATOMIC_ACQ_REL);
}
void note_unload() noexcept {
  unloads.fetch_add(1, std::memory_order_acq_rel);
  note_load();
}
std::uint32_t unload_count() noexcept {
  return unloads.load(std::memory_order_acquire);
}

}  // namespace hostwait::resolve
