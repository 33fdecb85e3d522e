// SPDX-License-Identifier: Apache-2.0
// Copyright The hostwait authors
// Call frame information of one address, reduced to a rule that fits in a register.
#include "unwind_cfi.hpp"

#include "sys.hpp"
#include "unwind_dwarf.hpp"
#include "unwind_objects.hpp"

namespace hostwait::unwind {

namespace {

// Where one register's value is, as the instructions say.
struct location {
  enum what_it_is { same, undefined, cfa_offset, expression, other } what = same;
  std::int64_t offset = 0;
  cursor code{};  // of an expression that gives the address
};
struct row {
  bool cfa_is_expression = false;
  std::uint64_t cfa_register = ~std::uint64_t{0};
  std::int64_t cfa_offset = 0;
  cursor cfa_code{};
  location bp, ra;

  location* of(std::uint64_t number) noexcept {
    if (number == register_bp) return &bp;
    return number == register_ra ? &ra : nullptr;
  }
};

struct description {
  std::uintptr_t begin = 0;
  std::uint64_t code_align = 1;
  std::int64_t data_align = 1;
  std::uint8_t pointer_encoding = 0;
  bool augmented = false, signal = false;
  cursor common{}, own{};  // instructions of the CIE and of the FDE
};

bool read_cie(cursor at, description& out) noexcept {
  std::uint64_t length = at.u32();
  if (length == 0 || length == 0xffffffff || !at.limit(length)) return false;
  if (at.u32() != 0) return false;
  std::uint8_t version = at.u8();
  cursor augmentation = at;
  while (at.u8() != 0)
    if (!at.good()) return false;
  if (version == 4) at.skip(2);
  out.code_align = at.uleb();
  out.data_align = at.sleb();
  std::uint64_t ra = version == 1 ? at.u8() : at.uleb();
  if (ra != register_ra) return false;
  std::uint8_t letter = augmentation.u8();
  if (letter == 'z') {
    out.augmented = true;
    std::uint64_t size = at.uleb();
    cursor data = at;
    if (!data.limit(size)) return false;
    at.skip(size);
    while ((letter = augmentation.u8()) != 0) {
      if (letter == 'R') {
        out.pointer_encoding = data.u8();
      } else if (letter == 'P') {
        std::uint8_t encoding = data.u8();
        data.encoded(encoding, 0);
      } else if (letter == 'L') {
        data.u8();
      } else if (letter == 'S') {
        out.signal = true;
      } else if (letter != 'B' && letter != 'G') {  // aarch64: key B, memory tags
        return false;
      }
    }
  } else if (letter != 0) {
    return false;
  }
  out.common = at;
  return at.good();
}

bool read_fde(const cursor& whole, std::uintptr_t fde, std::uintptr_t address,
              description& out) noexcept {
  cursor at = whole;
  if (!at.move_to(fde)) return false;
  std::uint64_t length = at.u32();
  if (length == 0 || length == 0xffffffff || !at.limit(length)) return false;
  std::uintptr_t here = at.position();
  cursor cie = whole;
  if (!cie.move_to(here - at.u32()) || !read_cie(cie, out)) return false;
  out.begin = at.encoded(out.pointer_encoding, whole.position());
  std::uintptr_t size = at.encoded(out.pointer_encoding & 0x0f, 0);
  if (out.augmented) at.skip(at.uleb());
  out.own = at;
  return at.good() && address - out.begin < size;
}

// The FDE that covers an address, by the sorted table of PT_GNU_EH_FRAME.
bool find_fde(const object& in, std::uintptr_t address, description& out) noexcept {
  if (in.frame_header == 0) return false;
  cursor whole(in.start, in.end);
  cursor at = whole;
  if (!at.move_to(in.frame_header)) return false;
  std::uint8_t version = at.u8(), pointer = at.u8(), count_kind = at.u8(), table = at.u8();
  // What every linker writes: 32-bit count, 32-bit pairs relative to the header.
  if (version != 1 || count_kind != 0x03 || table != 0x3b) return false;
  at.encoded(pointer, in.frame_header);
  std::uint32_t count = at.u32();
  const std::uintptr_t pairs = at.position();
  if (count == 0 || !at.good() || count > (in.end - pairs) / 8) return false;
  auto word = [&](std::uint32_t i) {
    return in.frame_header + static_cast<std::uintptr_t>(
                                 std::int64_t{reinterpret_cast<const std::int32_t*>(pairs)[i]});
  };
  std::uint32_t low = 0, high = count;
  while (high - low > 1) {
    std::uint32_t middle = low + (high - low) / 2;
    (word(2 * middle) <= address ? low : high) = middle;
  }
  return word(2 * low) <= address && read_fde(whole, word(2 * low + 1), address, out);
}

void set(row& now, std::uint64_t number, location to) noexcept {
  if (location* of = now.of(number)) *of = to;
}

// Executes instructions until the address is passed. `first` is the row after the CIE's, which
// DW_CFA_restore goes back to.
bool execute(cursor at, const description& d, std::uintptr_t address, row& now,
             const row& first) noexcept {
  row remembered[8];
  unsigned depth = 0;
  std::uintptr_t place = d.begin;
  using kind = location::what_it_is;
  while (!at.done() && at.good()) {
    std::uint8_t op = at.u8();
    std::uint64_t number = op & 0x3f;
    std::uintptr_t advance = 0;
    switch (op >> 6) {
      case 1:
        place += number * d.code_align;
        if (place > address) return true;
        continue;
      case 2:
        set(now, number, {kind::cfa_offset, static_cast<std::int64_t>(at.uleb()) * d.data_align});
        continue;
      case 3:
        if (location* of = now.of(number)) *of = *const_cast<row&>(first).of(number);
        continue;
      default:
        break;
    }
    switch (op) {
      case 0x00:
        break;      // nop
      case 0x01: {  // set_loc
        std::uintptr_t to = at.encoded(d.pointer_encoding, 0);
        if (to > address) return at.good();
        place = to;
        break;
      }
      case 0x02:
        advance = at.u8();
        break;
      case 0x03:
        advance = at.u16();
        break;
      case 0x04:
        advance = at.u32();
        break;
      case 0x05:  // offset_extended
        number = at.uleb();
        set(now, number, {kind::cfa_offset, static_cast<std::int64_t>(at.uleb()) * d.data_align});
        break;
      case 0x06:  // restore_extended
        number = at.uleb();
        if (location* of = now.of(number)) *of = *const_cast<row&>(first).of(number);
        break;
      case 0x07:
        set(now, at.uleb(), {kind::undefined});
        break;
      case 0x08:
        set(now, at.uleb(), {kind::same});
        break;
      case 0x09:  // register
        number = at.uleb();
        at.uleb();
        set(now, number, {kind::other});
        break;
      case 0x0a:
        if (depth == 8) return false;
        remembered[depth++] = now;
        break;
      case 0x0b:
        if (depth == 0) return false;
        now = remembered[--depth];
        break;
      case 0x0c:  // def_cfa
        now.cfa_is_expression = false;
        now.cfa_register = at.uleb();
        now.cfa_offset = static_cast<std::int64_t>(at.uleb());
        break;
      case 0x0d:
        now.cfa_is_expression = false;
        now.cfa_register = at.uleb();
        break;
      case 0x0e:
        now.cfa_offset = static_cast<std::int64_t>(at.uleb());
        break;
      case 0x0f:  // def_cfa_expression
        now.cfa_is_expression = true;
        now.cfa_code = at.block(at.uleb());
        break;
      case 0x10: {  // expression
        number = at.uleb();
        location to{kind::expression};
        to.code = at.block(at.uleb());
        set(now, number, to);
        break;
      }
      case 0x11:  // offset_extended_sf
        number = at.uleb();
        set(now, number, {kind::cfa_offset, at.sleb() * d.data_align});
        break;
      case 0x12:
        now.cfa_is_expression = false;
        now.cfa_register = at.uleb();
        now.cfa_offset = at.sleb() * d.data_align;
        break;
      case 0x13:
        now.cfa_offset = at.sleb() * d.data_align;
        break;
      case 0x14:  // val_offset, val_offset_sf
      case 0x15:
        number = at.uleb();
        at.uleb();
        set(now, number, {kind::other});
        break;
      case 0x16:  // val_expression
        number = at.uleb();
        at.block(at.uleb());
        set(now, number, {kind::other});
        break;
      case 0x2d:
        break;  // aarch64: negate_ra_state; the signature is always removed
      case 0x2e:
        at.uleb();
        break;    // GNU_args_size
      case 0x2f:  // GNU_negative_offset_extended
        number = at.uleb();
        set(now, number, {kind::cfa_offset, -static_cast<std::int64_t>(at.uleb()) * d.data_align});
        break;
      default:
        return false;
    }
    if (advance != 0) {
      place += advance * d.code_align;
      if (place > address) return true;
    }
  }
  return at.good();
}

saved_at reduce(const location& from, std::int32_t& offset) noexcept {
  switch (from.what) {
    case location::same:
    case location::undefined:
      return saved_at::nowhere;
    case location::cfa_offset:
      offset = static_cast<std::int32_t>(from.offset);
      return offset == from.offset ? saved_at::cfa : saved_at::lost;
    case location::expression: {
      based_address address;
      if (!plain_address(from.code, address)) return saved_at::lost;
      offset = address.offset;
      return address.number == register_bp ? saved_at::bp : saved_at::sp;
    }
    default:
      return saved_at::lost;
  }
}

rule reduce(const row& now, bool signal) noexcept {
  rule out;
  out.signal = signal;
  if (now.ra.what == location::undefined) {
    out.cfa = cfa_from::outermost;
    return out;
  }
  out.bp = reduce(now.bp, out.bp_offset);
  out.ra = reduce(now.ra, out.ra_offset);
  if (out.ra == saved_at::lost) return {};
#if defined(__x86_64__)
  if (out.ra == saved_at::nowhere) return {};  // no register holds a return address here
#endif
  if (!now.cfa_is_expression) {
    if (now.cfa_register != register_sp && now.cfa_register != register_bp) return {};
    out.cfa = now.cfa_register == register_sp ? cfa_from::sp : cfa_from::bp;
    out.cfa_offset = static_cast<std::int32_t>(now.cfa_offset);
    return out.cfa_offset == now.cfa_offset ? out : rule{};
  }
  based_address address;
  if (is_plt_address(now.cfa_code, out.cfa_offset)) {
    out.cfa = cfa_from::plt;
  } else if (plain_address(now.cfa_code, address)) {
    bool bp = address.number == register_bp;
    out.cfa_offset = address.offset;
    if (address.loads == 0) {
      out.cfa = bp ? cfa_from::bp : cfa_from::sp;
    } else if (address.add == 0) {
      out.cfa = bp ? cfa_from::bp_memory : cfa_from::sp_memory;
    } else if (address.add == 8) {
      out.cfa = bp ? cfa_from::bp_memory_8 : cfa_from::sp_memory_8;
    }
  }
  return out;
}

#if defined(__aarch64__)
// mov x8, #__NR_rt_sigreturn; svc #0. The kernel's own unwind information for it leads past the
// interrupted function, so that every unwinder looks for the instructions.
bool is_sigreturn(std::uintptr_t address) noexcept {
  if (address == 0 || address % 4 != 0 || !sys::readable(address)) return false;
  const auto* code = reinterpret_cast<const std::uint32_t*>(address);
  return code[0] == 0xd2801168 && code[1] == 0xd4000001;
}
#endif

}  // namespace

rule rule_of(std::uintptr_t address) noexcept {
#if defined(__aarch64__)
  if (is_sigreturn(address) || is_sigreturn(address + 1)) {
    rule signal;
    signal.cfa = cfa_from::kernel_signal;
    signal.signal = true;
    return signal;
  }
#endif
  object in;
  description d;
  if (!find_object(address, in) || !find_fde(in, address, d)) return {};
  row first, now;
  if (!execute(d.common, d, ~std::uintptr_t{0}, first, first)) return {};
  now = first;
  if (!execute(d.own, d, address, now, first)) return {};
  return reduce(now, d.signal);
}

std::uint64_t rule::packed() const noexcept {
  auto words = [](std::int32_t bytes, unsigned bits, std::uint64_t& out) {
    std::int32_t limit = 1 << (bits - 1);
    if (bytes % 8 != 0 || bytes / 8 >= limit || bytes / 8 < -limit) return false;
    out = static_cast<std::uint64_t>(bytes / 8) & ((std::uint64_t{1} << bits) - 1);
    return true;
  };
  std::uint64_t cfa_words, bp_words = 0, ra_words = 0;
  bool plt = cfa == cfa_from::plt;  // its number counts bytes and is below 16
  if (!words(plt ? cfa_offset * 8 : cfa_offset, 21, cfa_words) || !words(ra_offset, 16, ra_words))
    return 0;
  saved_at bp_now = bp;
  if (!words(bp_offset, 16, bp_words)) bp_now = saved_at::lost;
  return static_cast<std::uint64_t>(cfa) | static_cast<std::uint64_t>(bp_now) << 4 |
         static_cast<std::uint64_t>(ra) << 7 | static_cast<std::uint64_t>(signal) << 10 |
         cfa_words << 11 | bp_words << 32 | ra_words << 48;
}

rule rule::unpacked(std::uint64_t bits) noexcept {
  auto field = [bits](unsigned from, unsigned size) {
    return static_cast<std::int32_t>(static_cast<std::int64_t>(bits << (64 - from - size)) >>
                                     (64 - size));
  };
  rule out;
  out.cfa = static_cast<cfa_from>(bits & 15);
  out.bp = static_cast<saved_at>(bits >> 4 & 7);
  out.ra = static_cast<saved_at>(bits >> 7 & 7);
  out.signal = (bits >> 10 & 1) != 0;
  out.cfa_offset = field(11, 21) * (out.cfa == cfa_from::plt ? 1 : 8);
  out.bp_offset = field(32, 16) * 8;
  out.ra_offset = field(48, 16) * 8;
  return out;
}

}  // namespace hostwait::unwind
