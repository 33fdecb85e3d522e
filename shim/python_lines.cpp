// SPDX-License-Identifier: Apache-2.0
// Copyright The hostwait authors
// Decoder of CPython's location table.
#include "python_stack.hpp"

namespace hostwait::python {

namespace {

struct reader {
  const unsigned char* at;
  const unsigned char* end;

  unsigned byte() noexcept { return at != end ? *at++ : 0; }

  // Six bits a byte, low ones first; bit 6 says that more follow.
  std::uint32_t number() noexcept {
    unsigned b = byte();
    std::uint32_t value = b & 63;
    for (unsigned shift = 6; (b & 64) != 0 && shift < 32; shift += 6) {
      b = byte();
      value |= std::uint32_t{b & 63} << shift;
    }
    return value;
  }

  std::int32_t signed_number() noexcept {
    const std::uint32_t value = number();
    const auto magnitude = static_cast<std::int32_t>(value >> 1);
    return (value & 1) != 0 ? -magnitude : magnitude;
  }
};

}  // namespace

std::uint32_t line_at(const unsigned char* table, std::size_t table_bytes, std::uint32_t first_line,
                      std::size_t offset) noexcept {
  reader in{table, table + table_bytes};
  std::int64_t line = first_line;
  std::size_t begin = 0;
  while (in.at != in.end) {
    const unsigned head = in.byte();
    const unsigned form = (head >> 3) & 15;
    const std::size_t bytes = ((head & 7) + 1) * 2;
    bool known = true;
    if (form == 15) {  // no location
      known = false;
    } else if (form == 14) {  // line, end line, columns
      line += in.signed_number();
      in.number();
      in.number();
      in.number();
    } else if (form == 13) {  // line only
      line += in.signed_number();
    } else if (form >= 10) {  // up to two lines further, two column bytes
      line += form - 10;
      in.byte();
      in.byte();
    } else {  // same line, one column byte
      in.byte();
    }
    if (offset < begin + bytes) return known && line > 0 ? static_cast<std::uint32_t>(line) : 0;
    begin += bytes;
  }
  return 0;
}

}  // namespace hostwait::python
