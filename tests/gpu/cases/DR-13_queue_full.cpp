// SPDX-License-Identifier: Apache-2.0
// Copyright The hostwait authors
// DR-13, unexpected_sync, kotekan: https://github.com/kotekan/kotekan/pull/1675
// After about a thousand launches behind a running kernel the next launch stops the host until
// there is room (measured: the 1,022nd). That is back-pressure, not a synchronization: a kind of
// its own, queue_full, which must be armed at start and never fails a gate. 500 launches fit.
//
// options: --arm queue_full
// expect case: {"kind": "queue_full", "call": "cuLaunchKernel", "verdict": "depends", "reason":
//               "queue_depth", "waited": [1, 100], "violations": 0, "above_ms": 10, "frame":
//               "many_launches"}
// expect control: nothing
#include "cases.hpp"

namespace {

void launches(int count) {
  const CUstream s = cases::stream();
  cases::busy(s, 60);
  for (int i = 0; i < count; ++i) cases::small_kernel(s);
}

void many_launches() {
  launches(1100);
}
void few_launches() {
  launches(500);
}

HOSTWAIT_CASE("DR-13", many_launches, few_launches);

}  // namespace
