// SPDX-License-Identifier: Apache-2.0
// Copyright The hostwait authors
// For builds_test.py: whether the offsets that a running CPython 3.13 publishes give the layout of
// the table. Returns 0, or the number of a member that differs.
#include "python_layout.hpp"

extern "C" __attribute__((visibility("default"))) int hostwait_test_offsets_agree(
    const void* runtime) {
  using namespace hostwait::python;
  layout read;
  if (!published_layout(*static_cast<const published*>(runtime), 0x30d, read)) return 100;
  for (const layout& table : layouts) {
    if (table.version != 0x30d) continue;
    const std::uint16_t layout::*members[] = {
        &layout::state_frame,       &layout::frame_code,      &layout::frame_previous,
        &layout::frame_instruction, &layout::frame_owner,     &layout::code_filename,
        &layout::code_qualname,     &layout::code_line_table, &layout::code_first_line,
        &layout::code_bytes,        &layout::unicode_length,  &layout::unicode_state,
        &layout::ascii_data,        &layout::compact_data,    &layout::unicode_kind_bit,
        &layout::bytes_length,      &layout::bytes_data,      &layout::code_tag_bits};
    int number = 1;
    for (const auto member : members) {
      if (read.*member != table.*member) return number;
      ++number;
    }
    return 0;
  }
  return 101;
}
