// SPDX-License-Identifier: Apache-2.0
// Copyright The hostwait authors
// Reading DWARF's numbers within bounds, and the few expressions that frames are described with.
#pragma once

#include <cstdint>
#include <cstring>

#include "unwind_cfi.hpp"

namespace hostwait::unwind {

// Reads forward; past its end it gives zeros and is no longer good().
class cursor {
 public:
  constexpr cursor() noexcept = default;
  cursor(std::uintptr_t begin, std::uintptr_t end) noexcept
      : begin_(begin), at_(begin), end_(end) {}

  bool good() const noexcept { return good_; }
  bool done() const noexcept { return at_ >= end_; }
  std::uintptr_t position() const noexcept { return at_; }
  bool move_to(std::uintptr_t at) noexcept {
    if (at < begin_ || at >= end_) return false;
    at_ = at;
    return true;
  }
  // The end moves to `bytes` from here.
  bool limit(std::uint64_t bytes) noexcept {
    if (bytes > end_ - at_) return good_ = false;
    end_ = at_ + bytes;
    return true;
  }
  void skip(std::uint64_t bytes) noexcept {
    if (bytes > end_ - at_) {
      good_ = false;
      at_ = end_;
    } else {
      at_ += bytes;
    }
  }
  cursor block(std::uint64_t bytes) noexcept {
    cursor part = *this;
    if (!part.limit(bytes)) good_ = false;
    skip(bytes);
    return part;
  }

  std::uint8_t u8() noexcept { return fixed<std::uint8_t>(); }
  std::uint16_t u16() noexcept { return fixed<std::uint16_t>(); }
  std::uint32_t u32() noexcept { return fixed<std::uint32_t>(); }
  std::uint64_t uleb() noexcept {
    std::uint64_t value = 0;
    unsigned shift = 0;
    std::uint8_t byte;
    do {
      byte = u8();
      if (shift < 64) value |= static_cast<std::uint64_t>(byte & 0x7f) << shift;
      shift += 7;
    } while ((byte & 0x80) != 0);
    return value;
  }
  std::int64_t sleb() noexcept {
    std::uint64_t value = 0;
    unsigned shift = 0;
    std::uint8_t byte;
    do {
      byte = u8();
      if (shift < 64) value |= static_cast<std::uint64_t>(byte & 0x7f) << shift;
      shift += 7;
    } while ((byte & 0x80) != 0);
    if (shift < 64 && (byte & 0x40) != 0) value |= ~std::uint64_t{0} << shift;
    return static_cast<std::int64_t>(value);
  }
  // A pointer by DW_EH_PE_…; `data` is what "datarel" is relative to. Indirect ones are skipped.
  std::uintptr_t encoded(std::uint8_t encoding, std::uintptr_t data) noexcept {
    if (encoding == 0xff) return 0;
    std::uintptr_t here = at_, value = 0;
    switch (encoding & 0x0f) {
      case 0x00:
      case 0x04:
      case 0x0c:
        value = fixed<std::uint64_t>();
        break;
      case 0x01:
        value = uleb();
        break;
      case 0x02:
        value = u16();
        break;
      case 0x03:
        value = u32();
        break;
      case 0x09:
        value = static_cast<std::uintptr_t>(sleb());
        break;
      case 0x0a:
        value = widened(fixed<std::int16_t>());
        break;
      case 0x0b:
        value = widened(fixed<std::int32_t>());
        break;
      default:
        good_ = false;
    }
    switch (encoding & 0x70) {
      case 0x00:
        return value;
      case 0x10:
        return value + here;
      case 0x30:
        return value + data;
      default:
        good_ = false;
        return 0;
    }
  }

 private:
  template <class Integer>
  static std::uintptr_t widened(Integer value) noexcept {
    return static_cast<std::uintptr_t>(static_cast<std::int64_t>(value));
  }
  template <class Integer>
  Integer fixed() noexcept {
    Integer value{};
    if (sizeof value > end_ - at_) {
      good_ = false;
      at_ = end_;
      return value;
    }
    std::memcpy(&value, reinterpret_cast<const void*>(at_), sizeof value);
    at_ += sizeof value;
    return value;
  }

  std::uintptr_t begin_ = 0, at_ = 0, end_ = 0;
  bool good_ = true;
};

// register + offset, then as many loads (0 or 1), then + add.
struct based_address {
  unsigned number = 0;
  std::int32_t offset = 0;
  unsigned loads = 0;
  std::int64_t add = 0;
};

// breg(sp or bp) offset [deref [plus_uconst n | litN plus]]
inline bool plain_address(cursor code, based_address& out) noexcept {
  std::uint8_t op = code.u8();
  if (op < 0x70 || op > 0x8f) return false;
  out.number = op - 0x70u;
  if (out.number != register_sp && out.number != register_bp) return false;
  std::int64_t offset = code.sleb();
  out.offset = static_cast<std::int32_t>(offset);
  if (out.offset != offset) return false;
  if (code.done()) return code.good();
  if (code.u8() != 0x06) return false;
  out.loads = 1;
  if (code.done()) return code.good();
  op = code.u8();
  if (op == 0x23) {
    out.add = static_cast<std::int64_t>(code.uleb());
  } else if (op >= 0x30 && op <= 0x4f && code.u8() == 0x22) {
    out.add = op - 0x30;
  } else {
    return false;
  }
  return code.done() && code.good();
}

// The linkers' description of .plt: sp + 8 + ((ip & 15) >= N ? 8 : 0).
inline bool is_plt_address(cursor code, std::int32_t& past_push) noexcept {
  static constexpr std::uint8_t before[] = {0x77, 0x08, 0x80, 0x00, 0x3f, 0x1a};
  static constexpr std::uint8_t after[] = {0x2a, 0x33, 0x24, 0x22};
  for (std::uint8_t op : before)
    if (code.u8() != op) return false;
  std::uint8_t literal = code.u8();
  for (std::uint8_t op : after)
    if (code.u8() != op) return false;
  past_push = literal - 0x30;
  return code.done() && code.good() && past_push >= 0 && past_push < 16;
}

}  // namespace hostwait::unwind
