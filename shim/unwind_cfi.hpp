// SPDX-License-Identifier: Apache-2.0
// Copyright The hostwait authors
// Call frame information of one address, reduced to a rule that fits in a register.
#pragma once

#include <cstdint>

namespace hostwait::unwind {

#if defined(__x86_64__)
inline constexpr unsigned register_sp = 7, register_bp = 6, register_ra = 16;
#else
inline constexpr unsigned register_sp = 31, register_bp = 29, register_ra = 30;
#endif

// How to get from a frame to its caller's: where the canonical frame address (CFA, the caller's
// stack pointer) is, and where the return address and the caller's frame pointer were saved.
// Anything that does not fit here ends the walk: in practice hand-written code only.
enum class cfa_from : unsigned {
  nowhere,        // no information: the walk ends
  outermost,      // marked as the outermost frame: the walk ends
  sp,             // sp + offset
  bp,             // bp + offset
  bp_memory,      // [bp + offset]: functions that align their stack (DRAP)
  sp_memory,      // [sp + offset]: signal frames, assembly that keeps the old sp in memory
  bp_memory_8,    // [bp + offset] + 8
  sp_memory_8,    // [sp + offset] + 8
  plt,            // sp + 8, or + 16 once the entry has pushed its number
  kernel_signal,  // aarch64: the kernel's signal frame at sp
};
enum class saved_at : unsigned {
  nowhere,  // unchanged: still in its register
  cfa,      // [CFA + offset]
  bp,       // [bp + offset]
  sp,       // [sp + offset]
  lost,     // cannot be told
};

struct rule {
  cfa_from cfa = cfa_from::nowhere;
  std::int32_t cfa_offset = 0;  // of plt: the first byte of the entry past its push
  saved_at bp = saved_at::nowhere;
  std::int32_t bp_offset = 0;
  saved_at ra = saved_at::nowhere;
  std::int32_t ra_offset = 0;
  bool signal = false;  // what it returns to was interrupted, not calling

  // In 64 bits: offsets count words of eight bytes. 0 (no information) where one does not fit.
  std::uint64_t packed() const noexcept;
  static rule unpacked(std::uint64_t) noexcept;
};

// The packed form of nearly every frame, read field by field in the walk: CFA by sp or bp, return
// address at the CFA, frame pointer unchanged or at the CFA.
struct common_rule {
  std::uint64_t bits;
  bool is_one() const noexcept {
    constexpr std::uint64_t ra_at_cfa = static_cast<std::uint64_t>(saved_at::cfa) << 7;
    return (bits & 0x7ee) == (ra_at_cfa | static_cast<std::uint64_t>(cfa_from::sp));
  }
  bool by_bp() const noexcept { return (bits & 1) != 0; }
  bool saves_bp() const noexcept { return (bits & 0x10) != 0; }
  std::uintptr_t cfa_offset() const noexcept { return field(bits << 32, 21); }
  std::uintptr_t bp_offset() const noexcept { return field(bits << 16, 16); }
  std::uintptr_t ra_offset() const noexcept { return field(bits, 16); }

 private:
  static std::uintptr_t field(std::uint64_t topmost, unsigned size) noexcept {
    return static_cast<std::uintptr_t>(static_cast<std::int64_t>(topmost) >> (64 - size)) * 8;
  }
};
static_assert(static_cast<unsigned>(cfa_from::sp) == 2 &&
              static_cast<unsigned>(cfa_from::bp) == 3 &&
              static_cast<unsigned>(saved_at::nowhere) == 0 &&
              static_cast<unsigned>(saved_at::cfa) == 1);

// Looks the address up in the loaded objects' .eh_frame and executes its instructions.
rule rule_of(std::uintptr_t address) noexcept;

}  // namespace hostwait::unwind
