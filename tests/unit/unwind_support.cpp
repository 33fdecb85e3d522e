// SPDX-License-Identifier: Apache-2.0
// Copyright The hostwait authors
// Our stack beside the one of _Unwind_Backtrace, from the same place.
#include "unwind_support.hpp"

#include <unwind.h>

namespace hostwait::test {

two_stacks last;

namespace {

_Unwind_Reason_Code take(_Unwind_Context* context, void* data) {
  auto* out = static_cast<stack*>(data);
  if (out->count == 512) return _URC_END_OF_STACK;
  out->at[out->count++] = _Unwind_GetIP(context);
  return _URC_NO_REASON;
}

}  // namespace

__attribute__((noinline)) two_stacks take_stacks() {
  unwind::registers here{};
#if defined(__x86_64__)
  asm volatile("lea 1f(%%rip), %0\n1: mov %%rsp, %1\n mov %%rbp, %2"
               : "=&r"(here.ip), "=&r"(here.sp), "=&r"(here.bp));
#else
  asm volatile("adr %0, 1f\n1: mov %1, sp\n mov %2, x29\n"
               : "=&r"(here.ip), "=&r"(here.sp), "=&r"(here.bp));
#endif
  two_stacks out;
  out.ours.count = unwind::capture(here, out.ours.at, 512);
  _Unwind_Backtrace(take, &out.theirs);
  while (out.theirs.count != 0 && out.theirs.outermost() == 0) --out.theirs.count;
  // Frame 0 is this function, at two different addresses.
  for (stack* one : {&out.ours, &out.theirs}) {
    for (unsigned i = 1; i < one->count; ++i) one->at[i - 1] = one->at[i];
    if (one->count != 0) --one->count;
  }
  return out;
}

void take_last() {
  last = take_stacks();
}

extern "C" int take_last_from_c() {
  take_last();
  asm volatile("");
  return 1;
}

}  // namespace hostwait::test
