// SPDX-License-Identifier: Apache-2.0
// Copyright The hostwait authors
// UTF-8 decoding and escaping.
#include "escape.hpp"

#include <fmt/core.h>

#include <cstdint>

namespace hostwait {

namespace {

struct decoded {
  std::uint32_t code = 0;
  std::size_t length = 0;  // 0: not UTF-8
};

decoded decode(std::string_view text) {
  const auto at = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
  const unsigned char first = at(0);
  if (first < 0x80) return {first, 1};
  const std::size_t length = first >= 0xf0 ? 4 : first >= 0xe0 ? 3 : 2;
  if (first < 0xc2 || first > 0xf4 || text.size() < length) return {};
  std::uint32_t code = first & (0xffu >> (length + 1));
  for (std::size_t i = 1; i < length; ++i) {
    if ((at(i) & 0xc0) != 0x80) return {};
    code = code << 6 | (at(i) & 0x3fu);
  }
  const std::uint32_t least = length == 2 ? 0x80 : length == 3 ? 0x800 : 0x10000;
  if (code < least || code > 0x10ffff || (code >= 0xd800 && code < 0xe000)) return {};
  return {code, length};
}

bool is_unsafe(std::uint32_t code) {
  return code < 0x20 || (code >= 0x7f && code < 0xa0) ||  // C0, DEL, C1
         code == 0xad || code == 0x61c ||                 // soft hyphen, Arabic letter mark
         (code >= 0x200b && code <= 0x200f) ||            // zero width, direction marks
         (code >= 0x2028 && code <= 0x202e) ||            // separators, embeddings, overrides
         (code >= 0x2060 && code <= 0x206f) ||            // word joiner, isolates
         code == 0xfeff || (code >= 0xfff9 && code <= 0xfffb) ||
         (code >= 0xe0000 && code <= 0xe0fff);  // tags
}

}  // namespace

std::string for_terminal(std::string_view text) {
  std::string out;
  while (!text.empty()) {
    const decoded next = decode(text);
    if (next.length == 0) {
      out += fmt::format("\\x{:02x}", static_cast<unsigned char>(text[0]));
      text.remove_prefix(1);
      continue;
    }
    if (next.code == '\n') {
      out += "\\n";
    } else if (next.code == '\t') {
      out += "\\t";
    } else if (is_unsafe(next.code)) {
      out += next.code < 0x100 ? fmt::format("\\x{:02x}", next.code)
                               : fmt::format("\\u{:04x}", next.code);
    } else {
      out += text.substr(0, next.length);
    }
    text.remove_prefix(next.length);
  }
  return out;
}

std::size_t columns_of(std::string_view text) {
  std::size_t columns = 0;
  for (const char c : text) columns += (static_cast<unsigned char>(c) & 0xc0) != 0x80;
  return columns;
}

std::string cut_to(std::string_view text, std::size_t columns) {
  if (columns_of(text) <= columns) return std::string(text);
  if (columns == 0) return "";
  std::size_t end = 0, seen = 0;
  for (; end < text.size(); ++end) {
    if ((static_cast<unsigned char>(text[end]) & 0xc0) != 0x80 && ++seen == columns) break;
  }
  return std::string(text.substr(0, end)) + "…";
}

}  // namespace hostwait
