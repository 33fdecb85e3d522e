// SPDX-License-Identifier: Apache-2.0
// Copyright The hostwait authors
// Python frames of the calling thread, read from CPython's own structures: without the GIL (PyTorch
// releases it around waits), without running Python code or allocating Python objects, without
// linking Python. The frames of the calling thread cannot change while it is inside a call.
#pragma once

#include <cstddef>
#include <cstdint>

#include "sys.hpp"

namespace hostwait::python {

// One frame as it stands in the interpreter. `code` and `instruction` are addresses; `identity`
// tells a code object from one that stood at the same address before: the number that CPython
// gives each (3.12, 3.13), else a hash over what it says of its file, name and lines.
struct raw_frame {
  std::uintptr_t code, instruction;
  std::uint64_t identity;
};

inline std::uint64_t mix(std::uint64_t hash, std::uint64_t word) noexcept {
  hash = (hash ^ word) * 0x9e3779b97f4a7c15u;
  return hash ^ (hash >> 29);
}

// Innermost first. 0 where the thread has no Python frames, where Python is not in the process, is
// starting or finalizing, or is of a version or build whose layout is not known. not_found_yet
// where another thread is still looking for the interpreter.
inline constexpr unsigned not_found_yet = ~0u;
HOSTWAIT_HOT unsigned capture(raw_frame* out, unsigned limit) noexcept;

// What a frame says of itself; the texts are UTF-8, cut to their buffers.
struct frame_text {
  char file[512];
  char qualname[256];
  std::uint32_t first_line, line;  // line 0: the table knows none
};
void describe(const raw_frame& frame, frame_text& out) noexcept;

// "" while everything is understood; else one note for the report's head.
const char* note() noexcept;

// Line of the instruction at byte offset `offset`, from a location table of CPython 3.11 and later
// (Objects/locations.md of CPython describes the format). 0 where it has none.
std::uint32_t line_at(const unsigned char* table, std::size_t table_bytes, std::uint32_t first_line,
                      std::size_t offset) noexcept;

}  // namespace hostwait::python
