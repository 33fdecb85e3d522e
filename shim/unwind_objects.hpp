// SPDX-License-Identifier: Apache-2.0
// Copyright The hostwait authors
// Which loaded object an address belongs to.
#pragma once

#include <cstdint>

namespace hostwait::unwind {

struct object {
  std::uintptr_t start, end;    // mapped range, end exclusive
  std::uintptr_t bias;          // address - ELF virtual address
  const char* name;             // as the loader has it: "" for the executable; valid while loaded
  std::uintptr_t frame_header;  // PT_GNU_EH_FRAME, 0 if it has none
};

// Takes no lock where glibc has _dl_find_object (2.35 and later). On older ones dl_iterate_phdr
// takes the loader's short list lock, which is never held while foreign code runs, except for the
// callbacks of other dl_iterate_phdr calls. False: no object is there (generated code, for
// example).
bool find_object(std::uintptr_t address, object& out) noexcept;

}  // namespace hostwait::unwind
