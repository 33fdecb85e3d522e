// SPDX-License-Identifier: Apache-2.0
// Copyright The hostwait authors
// A bounded wait for another thread.
#pragma once

#include "sys.hpp"

namespace hostwait {

inline void relax() noexcept {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#else
  asm volatile("yield");
#endif
}

// Asks `done` again and again: some ten microseconds of spinning, then yields, since the other
// thread may have lost its processor. False: given up. No thread waits for another without end.
template <class Done>
bool shortly(Done done) noexcept {
  constexpr unsigned spins = 300, yields = 100;
  for (unsigned attempt = 0; attempt < spins + yields; ++attempt) {
    if (done()) return true;
    if (attempt < spins) {
      relax();
    } else {
      sys::sched_yield();
    }
  }
  return false;
}

}  // namespace hostwait
