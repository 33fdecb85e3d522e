// SPDX-License-Identifier: Apache-2.0
// Copyright The hostwait authors
// Reading loaded ELF objects: symbols, versions, relocations, the loader's list. No libc function
// is called here except where a comment says so: this code runs before our own relocations, too.
#pragma once

#include <elf.h>
#include <link.h>

#include <cstddef>
#include <cstdint>

// See row.hpp.
#pragma GCC visibility push(hidden)

namespace hostwait::resolve::elf {

// One loaded object, seen through its dynamic section.
struct image {
  std::uintptr_t bias = 0;  // address - ELF virtual address
  const ElfW(Dyn) * dynamic = nullptr;
  const ElfW(Sym) * symbols = nullptr;
  const char* strings = nullptr;
  const std::uint32_t* gnu_hash = nullptr;
  const std::uint32_t* sysv_hash = nullptr;
  const std::uint16_t* versions = nullptr;
  const ElfW(Verdef) * definitions = nullptr;
  std::size_t definition_count = 0;
  const ElfW(Rela) * relocations = nullptr;
  std::size_t relocation_count = 0;
  std::size_t relative_count = 0;  // the first ones of `relocations`
  const ElfW(Rela) * plt_relocations = nullptr;
  std::size_t plt_relocation_count = 0;
  const char* soname = "";
};

bool open(std::uintptr_t bias, const ElfW(Dyn) * dynamic, image& out) noexcept;

// The definition of `name`, through the GNU hash table or the SysV one. Without a version the
// default one is meant, or the only one there is. An object without versions has every version.
const ElfW(Sym) * find(const image&, const char* name, const char* version = nullptr) noexcept;

// Its address; the resolver of an IFUNC symbol is called.
void* address(const image&, const ElfW(Sym) &) noexcept;

// Whether the object names `soname` in DT_NEEDED.
bool needs(const image&, const char* soname) noexcept;

// Whether our own relative relocations have been applied. Before that no table of pointers can be
// used; a library relocated earlier may already call us, from an IFUNC resolver.
bool relocated() noexcept;

// The loader's list. Its head (the objects of start-up) is never unloaded, so it may be walked
// without a lock that far.
const r_debug* loader_list() noexcept;

// Our own dynamic section: how we recognise ourselves in the list.
const ElfW(Dyn) * own_dynamic() noexcept;

inline bool same(const char* a, const char* b) noexcept {
  while (*a != '\0' && *a == *b) ++a, ++b;
  return *a == *b;
}

inline bool begins(const char* text, const char* with) noexcept {
  while (*with != '\0' && *text == *with) ++text, ++with;
  return *with == '\0';
}

// One object of the caller's namespace, valid during for_each_module.
struct module {
  std::uintptr_t bias, start, end;
  std::uintptr_t relro_start, relro_end;  // PT_GNU_RELRO, not rounded to pages; equal: none
  const char* path;                       // "" for the executable
  const ElfW(Dyn) * dynamic;
  unsigned index;  // place in the loader's list
  unsigned long long loads, unloads;

  bool holds(const void* address) const noexcept {
    const auto at = reinterpret_cast<std::uintptr_t>(address);
    return start <= at && at < end;
  }
};

// Calls visit(context, module) for each object until it returns true. Holds the loader's list lock
// meanwhile (libc's dl_iterate_phdr): visit must not call dl* functions. True if visit did.
bool for_each_module(bool (*visit)(void* context, const module&), void* context) noexcept;

template <class Visit>
bool for_each_module(Visit&& visit) noexcept {
  return for_each_module(
      [](void* context, const module& m) -> bool {
        return (*static_cast<decltype(&visit)>(context))(m);
      },
      &visit);
}

}  // namespace hostwait::resolve::elf

#pragma GCC visibility pop
