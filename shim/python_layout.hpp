// SPDX-License-Identifier: Apache-2.0
// Copyright The hostwait authors
// Where CPython keeps what a stack needs, per version. 3.11 to 3.13 were read off the headers of
// 3.11.7, 3.12.1 and 3.13.0 with offsetof; a minor version keeps its layout. From 3.13 on the
// interpreter publishes most offsets itself (_PyRuntime starts with them), which is how 3.14 is
// read. scripts/check_python_layout.py compares the table with the headers at hand.
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
};

inline constexpr layout layouts[] = {
    {0x30b, 56, true, 8, 32, 48, 56, 69, 112, 128, 136, 72, 184, 16, 32, 48, 72, 2, 16, 32},
    {0x30c, 56, true, 0, 0, 8, 56, 70, 112, 128, 136, 68, 192, 16, 32, 40, 56, 2, 16, 32},
    {0x30d, 72, false, 0, 0, 8, 56, 70, 112, 128, 136, 68, 200, 16, 32, 40, 56, 2, 16, 32},
};

// Frames that stand for C code between Python frames (3.12 and later).
inline constexpr unsigned char owned_by_c_stack = 3;

}  // namespace hostwait::python
