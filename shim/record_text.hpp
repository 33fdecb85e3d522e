// SPDX-License-Identifier: Apache-2.0
// Copyright The hostwait authors
// Text without stdio, locale or allocation: lines, names and numbers for the record's writer.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

namespace hostwait::record {

// Builds a NUL-terminated text in a fixed room; what does not fit is cut.
template <std::size_t Room>
class text {
 public:
  text& operator<<(const char* more) noexcept {
    while (*more != '\0' && size_ + 1 < Room) at_[size_++] = *more++;
    at_[size_] = '\0';
    return *this;
  }
  text& operator<<(std::uint64_t number) noexcept {
    char digits[21];
    char* at = digits + 20;
    *at = '\0';
    do *--at = static_cast<char>('0' + number % 10);
    while ((number /= 10) != 0);
    return *this << at;
  }
  text& hex(std::uint32_t number) noexcept {
    char digits[9];
    for (int i = 0; i < 8; ++i) digits[i] = "0123456789abcdef"[number >> (28 - 4 * i) & 15];
    digits[8] = '\0';
    return *this << digits;
  }
  // As part of a file name: anything but letters, digits, '.', '_' and '+' becomes '_'.
  text& name(const char* more, std::size_t limit) noexcept {
    for (std::size_t i = 0; i < limit && more[i] != '\0'; ++i) {
      char c = more[i];
      bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                   (c == '.' && i != 0) || c == '_' || c == '+';
      char one[2] = {plain ? c : '_', '\0'};
      *this << one;
    }
    return *this;
  }
  const char* c_str() const noexcept { return at_; }
  std::size_t size() const noexcept { return size_; }

 private:
  char at_[Room] = {};
  std::size_t size_ = 0;
};

// A decimal number that fills the whole text and fits; otherwise `otherwise`.
inline std::int32_t number_or(const char* digits, std::int32_t otherwise) noexcept {
  if (digits == nullptr || *digits == '\0') return otherwise;
  std::int64_t value = 0;
  for (; *digits != '\0'; ++digits) {
    if (*digits < '0' || *digits > '9') return otherwise;
    value = value * 10 + (*digits - '0');
    if (value > 0x7fffffff) return otherwise;
  }
  return static_cast<std::int32_t>(value);
}

}  // namespace hostwait::record
