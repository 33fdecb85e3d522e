// SPDX-License-Identifier: Apache-2.0
// Copyright The hostwait authors
// Characters as UTF-8, into a buffer that ends with NUL.
#pragma once

#include <cstddef>
#include <cstdint>

namespace hostwait {

// Appends `c` at out[used]. False, and nothing is written, where it and the NUL do not fit in
// `room` bytes or where there is no such character.
inline bool append_utf8(char* out, std::size_t room, std::size_t& used, std::uint32_t c) noexcept {
  constexpr unsigned char lead[] = {0, 0, 0xc0, 0xe0, 0xf0};
  const std::size_t need = c < 0x80 ? 1 : c < 0x800 ? 2 : c < 0x10000 ? 3 : 4;
  if (used + need >= room || c > 0x10ffff) return false;
  out[used++] = static_cast<char>(need == 1 ? c : lead[need] | c >> (6 * (need - 1)));
  for (std::size_t k = need - 1; k > 0; --k)
    out[used++] = static_cast<char>(0x80 | (c >> (6 * (k - 1)) & 63));
  out[used] = '\0';
  return true;
}

}  // namespace hostwait
