// SPDX-License-Identifier: Apache-2.0
// Copyright The hostwait authors
// HK-01, missed_detection, CUDA runtime:
// https://forums.developer.nvidia.com/t/how-to-hook-cuda-runtime-api-in-cuda-11-4/190050
// Hooks on exported driver names saw a CUDA 10 program and not an 11.4 one: since then the
// runtime takes its entry points by dlsym and cuGetProcAddress, not by the link table. The same
// call is found, once, with the runtime's name.
//
// expect case: {"kind": "stream_sync", "call": "cuStreamSynchronize", "verdict": "stream",
//               "runtime": "cudaStreamSynchronize", "calls": 1, "waited": 1, "at": "here"}
// expect control: nothing
#include <cuda_runtime.h>

#include "cases.hpp"

namespace {

void wait_by_runtime() {
  const CUstream s = cases::stream();
  cases::busy(s);
  MUST(cudaStreamSynchronize(s));  // here
}

void no_wait() {
  const CUstream s = cases::stream();
  unsigned flags = 0;
  cases::busy(s);
  MUST(cudaStreamGetFlags(s, &flags));
}

HOSTWAIT_CASE("HK-01", wait_by_runtime, no_wait);

}  // namespace
