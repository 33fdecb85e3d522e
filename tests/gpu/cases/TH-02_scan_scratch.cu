// SPDX-License-Identifier: Apache-2.0
// Copyright The hostwait authors
// TH-02, unexpected_sync, Thrust: https://github.com/NVIDIA/thrust/issues/905
// A scan on one stream does not overlap with copies on another: its scratch memory comes from
// cudaMalloc, which does not wait, and goes by cudaFree, which waits for every stream. The free
// carries the wait, below the scan; the scan's own wait for its stream is a second, short
// finding. With stream-ordered scratch memory and no wait: silent.
//
// expect case: {"kind": "free", "call": "cuMemFree", "verdict": "context", "calls": 1, "waited":
//               1, "above_ms": 10, "frame": "inclusive_scan", "innermost": false, "at": "here"}
// expect case: {"kind": "stream_sync", "call": "cuStreamSynchronize", "verdict": "stream",
//               "below_ms": 10, "frame": "inclusive_scan", "innermost": false, "at": "here",
//               "optional": true}
// expect control: nothing
#include <cuda_runtime.h>
#include <thrust/execution_policy.h>
#include <thrust/scan.h>

#include "cases.hpp"
#include "stream_memory.hpp"

namespace {

constexpr int count = 4096;

void default_scratch() {
  const CUstream scanning = cases::stream(), copying = cases::stream();
  int* data = reinterpret_cast<int*>(cases::device(count * sizeof(int)));
  cases::busy(copying, 30);
  const auto policy = thrust::cuda::par.on(scanning);
  thrust::inclusive_scan(policy, data, data + count, data);  // here
}

void stream_scratch() {
  const CUstream scanning = cases::stream(), copying = cases::stream();
  int* data = reinterpret_cast<int*>(cases::device(count * sizeof(int)));
  stream_memory memory{scanning};
  cases::busy(copying, 30);
  const auto policy = thrust::cuda::par_nosync(memory).on(scanning);
  thrust::inclusive_scan(policy, data, data + count, data);
}

HOSTWAIT_CASE("TH-02", default_scratch, stream_scratch);

}  // namespace
