// SPDX-License-Identifier: Apache-2.0
// Copyright The hostwait authors
// Native call stacks. Async-signal-safe, no allocation by malloc, no lock that blocks.
#pragma once

#include <cstdint>

#include "sys.hpp"

namespace hostwait::unwind {

struct registers {
  std::uintptr_t ip, sp, bp;  // of the frame to start from; on aarch64 bp is x29
  std::uintptr_t lr = 0;      // aarch64 only
};

// Writes return addresses, innermost first, into out[0..limit): out[0] is `from.ip`. Returns how
// many. Stops at the first frame without unwind information, never reads outside the stack that
// `from.sp` lies on. Rules are cached per address; the cache forgets when
// resolve::loader_generation() moves.
HOSTWAIT_HOT unsigned capture(const registers& from, std::uintptr_t* out, unsigned limit) noexcept;

// Whether the stack above `from` still has that frame of ours whose caller's stack pointer was
// `sp`: `gone` where a longjmp, a cancellation or another fiber has left it, `unknown` where the
// walk ends before it can tell.
enum class frame_state : std::uint8_t { active, gone, unknown };
frame_state look_for(const registers& from, std::uintptr_t sp) noexcept;

}  // namespace hostwait::unwind
