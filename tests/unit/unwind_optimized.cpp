// SPDX-License-Identifier: Apache-2.0
// Copyright The hostwait authors
// Compiled with -O3 -fomit-frame-pointer: inlined functions and calls in tail position.
#include "unwind_support.hpp"

namespace hostwait::test {

namespace {

inline int inlined(int depth) {
  int sum = 0;
  for (int i = 0; i < depth; ++i) sum += take_last_from_c() * i;
  return sum + 1;
}
__attribute__((noinline)) int tail_2(int depth) {
  return inlined(depth) + depth;
}
__attribute__((noinline)) int tail_1(int depth) {
  return tail_2(depth * 2);
}

}  // namespace

int through_inlined_and_tail_calls(int depth) {
  return tail_1(depth);
}

}  // namespace hostwait::test
