// SPDX-License-Identifier: Apache-2.0
// Copyright The hostwait authors
// HP-03, missing_sync, Kokkos: https://github.com/kokkos/kokkos/issues/9307
// Code relied on cudaFree waiting for the device. It does for ordinary memory, and does not for
// stream-ordered memory (measured): where the pointer came from decides. hostwait tells the two
// apart; it has no report of waits that are gone, which the row asks for (compare two reports).
//
// expect case: {"kind": "free", "call": "cuMemFree", "verdict": "context", "calls": 1, "waited":
//               1, "at": "here"}
// expect control: nothing
#include "cases.hpp"

namespace {

void ordinary_memory() {
  CUdeviceptr made = 0;
  MUST(cuMemAlloc(&made, 4096));
  cases::busy(cases::stream());
  MUST(cuMemFree(made));  // here
}

void stream_ordered_memory() {
  const CUdeviceptr made = cases::pool(4096);
  cases::busy(cases::stream());
  MUST(cuMemFree(made));
}

HOSTWAIT_CASE("HP-03", ordinary_memory, stream_ordered_memory);

}  // namespace
