// SPDX-License-Identifier: Apache-2.0
// Copyright The hostwait authors
// HK-09, missed_detection, NVBit: https://github.com/NVlabs/NVBit/issues/134
// How can a preloaded tool see the calls of a runtime that is linked statically (nvcc's default,
// as here)? At the driver: each wait is found at the user's line, under the name of the driver's
// call and the runtime's likely one.
//
// expect case: {"kind": "copy", "call": "cuMemcpyDtoH", "verdict": "legacy", "runtime":
//               "cudaMemcpy", "calls": 1, "waited": 1, "at": "copy"}
// expect case: {"kind": "free", "call": "cuMemFree", "verdict": "context", "runtime": "cudaFree",
//               "calls": 1, "waited": 1, "at": "free"}
// expect case: {"kind": "stream_sync", "call": "cuStreamSynchronize", "verdict": "stream",
//               "runtime": "cudaStreamSynchronize", "calls": 1, "waited": 1, "at": "stream"}
// expect control: nothing
#include <cuda_runtime.h>

#include "cases.hpp"

namespace {

void three_waits() {
  const CUstream s = cases::blocking_stream();
  const CUdeviceptr from = cases::device(4096);
  void *host = cases::pageable(4096), *memory = nullptr;
  MUST(cudaMalloc(&memory, 4096));
  cases::busy(s, 10);
  MUST(cudaMemcpy(host, reinterpret_cast<void*>(from), 4096, cudaMemcpyDeviceToHost));  // here copy
  cases::busy(s, 10);
  MUST(cudaFree(memory));  // here free
  cases::busy(s, 10);
  MUST(cudaStreamSynchronize(s));  // here stream
}

void enqueue_only() {
  const CUstream s = cases::blocking_stream();
  const CUdeviceptr from = cases::device(4096);
  void* host = cases::pinned(4096);
  cases::busy(s, 10);
  MUST(cudaMemcpyAsync(host, reinterpret_cast<void*>(from), 4096, cudaMemcpyDeviceToHost, s));
}

HOSTWAIT_CASE("HK-09", three_waits, enqueue_only);

}  // namespace
