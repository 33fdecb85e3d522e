// SPDX-License-Identifier: Apache-2.0
// Copyright The hostwait authors
// RA-13, capture, cuOpt: https://github.com/NVIDIA/cuopt/pull/1250
// Math handles made in a second thread break a capture that runs in the first: their first use
// allocates, which the global mode forbids to every thread (measured: error 900, and 901 at the
// capture's end). The allocation waits for nothing and is no finding; the broken capture is one,
// with both threads.
//
// expect captures: {"call": "cuMemAlloc", "thread": "handles", "mode": "global", "begun_at":
//                    "begin", "at": "here"}
// expect case: nothing
// expect control: nothing
#include "cases.hpp"

namespace {

void capture_beside(bool allocate) {
  const CUstream captured = cases::stream(), other = cases::stream();
  CUgraph graph = nullptr;
  MUST(cuStreamBeginCapture(captured, CU_STREAM_CAPTURE_MODE_GLOBAL));  // here begin
  cases::small_kernel(captured);
  cases::worker("handles", [=] {
    cases::small_kernel(other);
    if (!allocate) return;
    CUdeviceptr made = 0;
    const CUresult result = cuMemAlloc(&made, 1 << 20);  // here
    cases::expect(result == CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED, "the allocation returns 900");
  }).join();
  const CUresult ended = cuStreamEndCapture(captured, &graph);
  cases::expect(ended == (allocate ? CUDA_ERROR_STREAM_CAPTURE_INVALIDATED : CUDA_SUCCESS),
                allocate ? "the capture is invalidated" : "the capture survives");
  if (graph != nullptr) MUST(cuGraphDestroy(graph));
}

void with_allocation() {
  capture_beside(true);
}
void without_allocation() {
  capture_beside(false);
}

HOSTWAIT_CASE("RA-13", with_allocation, without_allocation);

}  // namespace
