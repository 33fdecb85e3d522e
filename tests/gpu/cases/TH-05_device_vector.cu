// SPDX-License-Identifier: Apache-2.0
// Copyright The hostwait authors
// TH-05, unexpected_sync, Thrust: https://github.com/NVIDIA/thrust/issues/1017
// Making a device vector fills it on the default stream and waits for that: so it waits for a
// blocking stream that has nothing to do with it. hostwait reports the wait with verdict legacy;
// the launch on stream 0 is no finding by itself. Stream-ordered memory and an asynchronous
// memset: silent.
//
// expect case: {"kind": "stream_sync|device_sync", "verdict": "legacy|context", "calls": 1,
//               "waited": 1, "above_ms": 5, "innermost": false, "at": "here"}
// expect control: nothing
#include <cuda_runtime.h>
#include <thrust/device_vector.h>

#include <memory>

#include "cases.hpp"

namespace {

constexpr int count = 4096;

void make_vector() {
  const CUstream s = cases::blocking_stream();
  cases::busy(s, 20);
  auto v = std::make_unique<thrust::device_vector<int>>(count);  // here
  const cases::setup labelled;
  v.reset();
}

void make_memory() {
  const CUstream s = cases::blocking_stream();
  void* memory = nullptr;
  cases::busy(s, 20);
  MUST(cudaMallocAsync(&memory, count * sizeof(int), s));
  MUST(cudaMemsetAsync(memory, 0, count * sizeof(int), s));
  MUST(cudaFreeAsync(memory, s));
}

HOSTWAIT_CASE("TH-05", make_vector, make_memory);

}  // namespace
