// SPDX-License-Identifier: Apache-2.0
// Copyright The hostwait authors
// Where CPython keeps what a stack needs, per version. 3.11 to 3.13 were read off the headers of
// 3.11.7, 3.12.1 and 3.13.0 with offsetof; a minor version keeps its layout. From 3.13 on the
// interpreter publishes most offsets itself: _PyRuntime starts with them. 3.14 is read that way;
// for 3.13 a test compares what is published with the table.
#pragma once

#include <cstdint>

namespace hostwait::python {

struct layout {
  std::uint32_t version;  // (major << 8) | minor
  // PyThreadState: the current frame, directly or behind a C frame (3.11, 3.12).
  std::uint16_t state_frame;
  bool behind_c_frame;
  std::uint16_t c_frame_current;
  // _PyInterpreterFrame
  std::uint16_t frame_code, frame_previous, frame_instruction, frame_owner;
  // PyCodeObject
  std::uint16_t code_filename, code_qualname, code_line_table, code_first_line, code_bytes;
  // PyASCIIObject, PyCompactUnicodeObject, PyBytesObject
  std::uint16_t unicode_length, unicode_state, ascii_data, compact_data;
  std::uint16_t unicode_kind_bit;  // of `kind` (3 bits) in the state word; compact, ascii follow
  std::uint16_t bytes_length, bytes_data;
  // A number that no two code objects of an interpreter share; 0 where there is none.
  std::uint16_t code_version;
  // Low bits of a frame's reference to its code that are no part of the address (3.14).
  std::uint16_t code_tag_bits;
};

inline constexpr layout layouts[] = {
    {0x30b, 56, true, 8, 32, 48, 56, 69, 112, 128, 136, 72, 184, 16, 32, 48, 72, 2, 16, 32, 0, 0},
    {0x30c, 56, true, 0, 0, 8, 56, 70, 112, 128, 136, 68, 192, 16, 32, 40, 56, 2, 16, 32, 92, 0},
    {0x30d, 72, false, 0, 0, 8, 56, 70, 112, 128, 136, 68, 200, 16, 32, 40, 56, 2, 16, 32, 92, 0},
};

// Frames that stand for the interpreter itself or for C code between Python frames (3.12 and
// later) have this owner or a higher one.
inline constexpr unsigned char first_foreign_owner = 3;

// What stands at the start of _PyRuntime from 3.13 on: a cookie, the version, a flag, and then
// structures of offsets, each beginning with the size of what it describes.
struct published {
  char cookie[8];
  std::uint64_t version, free_threaded;
  std::uint64_t words[80];  // runtime state first; there are more
};

// The layout by the published offsets of 3.13 or 3.14. False where they are not what that version
// is known to publish: sizes and offsets that never change must come out right.
bool published_layout(const published&, std::uint32_t version, layout& out) noexcept;

// What was found of an interpreter, and what can be done with it. `version` is Py_Version,
// `runtime` null where _PyRuntime is not exported.
struct verdict_on_build {
  bool usable;
  const char* note;  // for the report's head; "" for nothing to say. Static, or in `room`.
};
verdict_on_build choose_layout(std::uint64_t version, const published* runtime,
                               bool free_threaded_symbols, layout& out, char (&room)[128]) noexcept;

}  // namespace hostwait::python
