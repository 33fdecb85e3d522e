// SPDX-License-Identifier: Apache-2.0
// Copyright The hostwait authors
// DR-07, false_positive, chipStar: https://github.com/CHIP-SPV/chipStar/issues/191
// Destroying a stream with work pending returns at once (measured): no finding. The device-wide
// wait that the other implementation made of it is one.
//
// expect case: {"kind": "device_sync", "call": "cuCtxSynchronize", "verdict": "context", "calls":
//               1, "waited": 1, "at": "here"}
// expect control: nothing
#include "cases.hpp"

namespace {

void destroy() {
  CUstream s = nullptr;
  MUST(cuStreamCreate(&s, CU_STREAM_NON_BLOCKING));
  cases::busy(s);
  MUST(cuStreamDestroy(s));
}

void wait_and_destroy() {
  CUstream s = nullptr;
  MUST(cuStreamCreate(&s, CU_STREAM_NON_BLOCKING));
  cases::busy(s);
  MUST(cuCtxSynchronize());  // here
  MUST(cuStreamDestroy(s));
}

HOSTWAIT_CASE("DR-07", wait_and_destroy, destroy);

}  // namespace
