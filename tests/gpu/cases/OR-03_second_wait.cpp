// SPDX-License-Identifier: Apache-2.0
// Copyright The hostwait authors
// OR-03, unexpected_sync, ONNX Runtime: https://github.com/microsoft/onnxruntime/pull/17770
// A run waits for its own stream and then for the default stream, on which another component
// works: two findings, the second one with the larger time and verdict legacy.
//
// expect case: {"kind": "stream_sync", "call": "cuStreamSynchronize", "verdict": "stream",
//               "calls": 1, "below_ms": 10, "at": "own"}
// expect case: {"kind": "stream_sync", "call": "cuStreamSynchronize", "verdict": "legacy",
//               "calls": 1, "waited": 1, "above_ms": 15, "at": "default"}
// expect control: nothing
#include "cases.hpp"

namespace {

void wait_twice() {
  const CUstream own = cases::stream();
  cases::busy(nullptr, 30);
  cases::busy(own, 1);
  MUST(cuStreamSynchronize(own));      // here own
  MUST(cuStreamSynchronize(nullptr));  // here default
}

void order_on_the_device() {
  const CUstream own = cases::stream(), consumer = cases::stream();
  cases::busy(nullptr, 30);
  cases::busy(own, 1);
  cases::order(own, consumer);
}

HOSTWAIT_CASE("OR-03", wait_twice, order_on_the_device);

}  // namespace
