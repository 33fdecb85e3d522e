// SPDX-License-Identifier: Apache-2.0
// Copyright The hostwait authors
// DR-02, false_positive, CUDA driver:
// https://forums.developer.nvidia.com/t/cuda-implicit-synchronization-behavior-and-conditions-in-detail/251729
// A launch on the null stream between two streams changes the order on the device; it does not
// stop the host. hostwait says nothing about such launches and has no rule for order on the
// device. The wait that does stop the host is named, with the legacy stream as what it waits for.
//
// expect case: {"kind": "stream_sync", "call": "cuStreamSynchronize", "verdict": "legacy",
//               "calls": 1, "waited": 1, "at": "here"}
// expect control: nothing
#include "cases.hpp"

namespace {

void launches() {
  const CUstream first = cases::blocking_stream(), second = cases::blocking_stream();
  cases::busy(first);
  cases::small_kernel(first);
  cases::small_kernel(nullptr);
  cases::small_kernel(second);
}

void launches_and_wait() {
  launches();
  MUST(cuStreamSynchronize(nullptr));  // here
}

HOSTWAIT_CASE("DR-02", launches_and_wait, launches);

}  // namespace
