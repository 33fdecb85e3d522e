// SPDX-License-Identifier: Apache-2.0
// Copyright The hostwait authors
// TR-01, capture, TensorRT: https://github.com/NVIDIA/TensorRT/issues/2888
// A device-wide wait in one thread breaks a capture of another: it returns error 900 and the
// capture ends with 901 (measured in every mode). hostwait names that wait, its thread and line,
// with reason capture. Enqueueing on another stream leaves the capture whole.
//
// expect captures: {"call": "cuCtxSynchronize", "thread": "intruder", "mode": "global",
//                   "begun_at": "begin", "at": "here"}
// expect case: {"kind": "device_sync", "call": "cuCtxSynchronize", "verdict": "context",
//               "reason": "capture", "calls": 1, "at": "here"}
// expect control: nothing
#include "cases.hpp"

namespace {

void capture_beside(bool wait) {
  const CUstream captured = cases::stream(), other = cases::stream();
  CUgraph graph = nullptr;
  MUST(cuStreamBeginCapture(captured, CU_STREAM_CAPTURE_MODE_GLOBAL));  // here begin
  cases::small_kernel(captured);
  cases::worker("intruder", [=] {
    cases::small_kernel(other);
    if (!wait) return;
    const CUresult result = cuCtxSynchronize();  // here
    cases::expect(result == CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED, "the wait returns 900");
  }).join();
  const CUresult ended = cuStreamEndCapture(captured, &graph);
  cases::expect(ended == (wait ? CUDA_ERROR_STREAM_CAPTURE_INVALIDATED : CUDA_SUCCESS),
                wait ? "the capture is invalidated" : "the capture survives");
  if (graph != nullptr) MUST(cuGraphDestroy(graph));
}

void with_wait() {
  capture_beside(true);
}
void without_wait() {
  capture_beside(false);
}

HOSTWAIT_CASE("TR-01", with_wait, without_wait);

}  // namespace
