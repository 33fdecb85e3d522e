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

// Looks the address up in the loaded objects' .eh_frame and executes its instructions.
rule rule_of(std::uintptr_t address) noexcept;

}  // namespace hostwait::unwind
