// SPDX-License-Identifier: Apache-2.0
// Copyright The hostwait authors
// LL-08, capture, llama.cpp: https://github.com/ggml-org/llama.cpp/pull/14033
// Clearing a buffer in one thread ended in a device-wide wait, which broke a capture in another.
// The finding names the wait with reason capture. The repaired form waits for the thread's own
// stream: the capture (thread-local mode) survives, and the wait is a plain finding without that
// reason.
//
// expect captures: {"call": "cuCtxSynchronize", "thread": "clearing", "mode": "thread_local",
//                   "begun_at": "begin", "at": "device"}
// expect case: {"kind": "device_sync", "call": "cuCtxSynchronize", "verdict": "context",
//               "reason": "capture", "calls": 1, "at": "device"}
// expect control: {"kind": "stream_sync", "call": "cuStreamSynchronize", "verdict": "stream",
//                  "calls": 1, "at": "own"}
#include "cases.hpp"

namespace {

constexpr size_t bytes = 4096;

void capture_beside(bool device_wide) {
  const CUstream captured = cases::stream();
  const CUdeviceptr buffer = cases::device(bytes);
  CUgraph graph = nullptr;
  MUST(cuStreamBeginCapture(captured, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL));  // here begin
  cases::small_kernel(captured);
  cases::worker("clearing", [=] {
    MUST(cuMemsetD8Async(buffer, 0, bytes, CU_STREAM_PER_THREAD));
    if (device_wide) {
      const CUresult result = cuCtxSynchronize();  // here device
      cases::expect(result == CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED, "the wait returns 900");
    } else {
      MUST(cuStreamSynchronize(CU_STREAM_PER_THREAD));  // here own
    }
  }).join();
  const CUresult ended = cuStreamEndCapture(captured, &graph);
  cases::expect(ended == (device_wide ? CUDA_ERROR_STREAM_CAPTURE_INVALIDATED : CUDA_SUCCESS),
                device_wide ? "the capture is invalidated" : "the capture survives");
  if (graph != nullptr) MUST(cuGraphDestroy(graph));
}

void device_wide() {
  capture_beside(true);
}
void own_stream() {
  capture_beside(false);
}

HOSTWAIT_CASE("LL-08", device_wide, own_stream);

}  // namespace
