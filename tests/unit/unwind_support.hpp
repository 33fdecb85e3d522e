// SPDX-License-Identifier: Apache-2.0
// Copyright The hostwait authors
// Our stack beside the one of _Unwind_Backtrace, from the same place.
#pragma once

#include <cstdint>
#include <vector>

#include "unwind.hpp"

namespace hostwait::test {

struct two_stacks {
  std::vector<std::uintptr_t> ours, theirs;  // callers of the function that took them
  bool equal() const { return ours == theirs; }
};

// Both stacks of the caller. Not inlined: the caller is frame 1 of both.
two_stacks take_stacks();

// The last one that a scenario's innermost function took.
extern two_stacks last;
void take_last();
// The same as a pointer for code without C++: returns 1 so that the call is no tail call.
extern "C" int take_last_from_c();

// Compiled with other options than the rest (unwind_optimized.cpp, unwind_framed.cpp).
int through_inlined_and_tail_calls(int depth);
int through_framed(int depth);

}  // namespace hostwait::test
