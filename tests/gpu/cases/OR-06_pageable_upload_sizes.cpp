// SPDX-License-Identifier: Apache-2.0
// Copyright The hostwait authors
// OR-06, unexpected_sync, ONNX Runtime: https://github.com/microsoft/onnxruntime/issues/20947
// A profiler's rule calls every asynchronous upload from ordinary memory synchronous. Measured: a
// single one of up to 2 MiB is staged and does not stop the host; one byte more does. So size
// decides, and hostwait gives depends (silent unless it took long) below the limit and a finding
// above it.
//
// expect case: {"kind": "async_copy", "call": "cuMemcpyHtoDAsync", "verdict": "stream", "calls":
//               1, "waited": 1, "above_ms": 15, "at": "here"}
// expect control: nothing
#include "cases.hpp"

namespace {

constexpr size_t limit = 2 << 20;

void over_the_limit() {
  const CUstream s = cases::stream();
  const CUdeviceptr to = cases::device(limit + 1);
  const void* from = cases::pageable(limit + 1);
  cases::busy(s, 30);
  MUST(cuMemcpyHtoDAsync(to, from, limit + 1, s));  // here
}

void up_to_the_limit() {
  const CUstream s = cases::stream();
  const CUdeviceptr to = cases::device(limit);
  const void* from = cases::pageable(limit);
  for (const size_t bytes : {size_t{4}, size_t{64} << 10, (size_t{64} << 10) + 1, limit}) {
    cases::busy(s, 20);
    MUST(cuMemcpyHtoDAsync(to, from, bytes, s));
    cases::idle();
  }
}

HOSTWAIT_CASE("OR-06", over_the_limit, up_to_the_limit);

}  // namespace
