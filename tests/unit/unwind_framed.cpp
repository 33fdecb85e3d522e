// SPDX-License-Identifier: Apache-2.0
// Copyright The hostwait authors
// Compiled with -fno-omit-frame-pointer: rules by the frame pointer.
#include "unwind_support.hpp"

namespace hostwait::test {

__attribute__((noinline)) int through_framed(int depth) {
  volatile int room[16];
  room[depth % 16] = depth;
  if (depth == 0) return take_last_from_c() + room[0];
  return through_framed(depth - 1) + room[depth % 16];
}

}  // namespace hostwait::test
