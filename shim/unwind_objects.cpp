// SPDX-License-Identifier: Apache-2.0
// Copyright The hostwait authors
// Which loaded object an address belongs to.
#include "unwind_objects.hpp"

#include <link.h>

#include <atomic>
#include <cstddef>

#include "resolve.hpp"

namespace hostwait::unwind {

namespace {

// struct dl_find_object of glibc 2.35, which older headers lack. The reserved words keep its size;
// neither machine has the two optional members.
struct found_object {
  unsigned long long flags;
  void* map_start;
  void* map_end;
  link_map* map;
  void* eh_frame;
  unsigned long long reserved[7];
};
using find_function = int (*)(void*, found_object*);
using iterate_function = int (*)(int (*)(dl_phdr_info*, std::size_t, void*), void*);

constexpr std::uintptr_t not_there = 1;
constinit std::atomic<std::uintptr_t> find_{0}, iterate_{0};

template <class Function>
Function looked_up(std::atomic<std::uintptr_t>& cache, const char* name) noexcept {
  std::uintptr_t known = cache.load(std::memory_order_relaxed);
  if (known == 0) {
    known = reinterpret_cast<std::uintptr_t>(resolve::libc_symbol(name));
    if (known == 0) known = not_there;
    cache.store(known, std::memory_order_relaxed);
  }
  return known == not_there ? nullptr : reinterpret_cast<Function>(known);
}

struct search {
  std::uintptr_t address;
  object* out;
};

int look_at(dl_phdr_info* info, std::size_t, void* data) {
  auto* wanted = static_cast<search*>(data);
  std::uintptr_t start = ~std::uintptr_t{0}, end = 0, frames = 0;
  bool inside = false;
  for (unsigned i = 0; i < info->dlpi_phnum; ++i) {
    const ElfW(Phdr)& part = info->dlpi_phdr[i];
    std::uintptr_t from = info->dlpi_addr + part.p_vaddr;
    if (part.p_type == PT_LOAD) {
      if (from < start) start = from;
      if (from + part.p_memsz > end) end = from + part.p_memsz;
      inside |= wanted->address - from < part.p_memsz;
    } else if (part.p_type == PT_GNU_EH_FRAME) {
      frames = from;
    }
  }
  if (!inside) return 0;
  *wanted->out = {start & ~std::uintptr_t{4095}, end, info->dlpi_addr, info->dlpi_name, frames};
  return 1;
}

}  // namespace

bool find_object(std::uintptr_t address, object& out) noexcept {
  if (auto* find = looked_up<find_function>(find_, "_dl_find_object")) {
    found_object found;
    if (find(reinterpret_cast<void*>(address), &found) != 0) return false;
    out = {reinterpret_cast<std::uintptr_t>(found.map_start),
           reinterpret_cast<std::uintptr_t>(found.map_end), found.map->l_addr, found.map->l_name,
           reinterpret_cast<std::uintptr_t>(found.eh_frame)};
    return true;
  }
  auto* iterate = looked_up<iterate_function>(iterate_, "dl_iterate_phdr");
  search wanted{address, &out};
  return iterate != nullptr && iterate(look_at, &wanted) == 1;
}

}  // namespace hostwait::unwind
