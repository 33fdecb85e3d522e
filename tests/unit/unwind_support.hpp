// SPDX-License-Identifier: Apache-2.0
// Copyright The hostwait authors
// Our stack beside the one of _Unwind_Backtrace, from the same place.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "unwind.hpp"

namespace hostwait::test {

// Taken in signal handlers, too: no allocation.
struct stack {
  std::uintptr_t at[512];
  unsigned count = 0;
  std::size_t size() const { return count; }
  std::uintptr_t innermost(unsigned i) const { return at[i]; }
  std::uintptr_t outermost() const { return count == 0 ? 0 : at[count - 1]; }
  std::vector<std::uintptr_t> list() const { return {at, at + count}; }
};

struct two_stacks {
  stack ours, theirs;  // callers of the function that took them
  bool equal() const {
    for (unsigned i = 0; i < ours.count && i < theirs.count; ++i)
      if (ours.at[i] != theirs.at[i]) return false;
    return ours.count == theirs.count;
  }
};

// Both stacks of the caller, which is their innermost frame.
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
