// SPDX-License-Identifier: Apache-2.0
// Copyright The hostwait authors
// LB-02, capture, llama.cpp: https://github.com/ggml-org/llama.cpp/pull/14288
// Destroying a math handle in one thread breaks another thread's capture. The cause is the
// device-wide wait below cublasDestroy: a finding with reason capture. What the library frees
// there in vain may be a finding as well.
//
// expect captures: {"call": "cuCtxSynchronize", "thread": "destroyer", "mode": "global",
//                   "begun_at": "begin", "at": "here"}
// expect case: {"kind": "device_sync", "call": "cuCtxSynchronize", "verdict": "context",
//               "reason": "capture", "frame": "cublasDestroy", "sites": [1, null], "at": "here"}
// expect case: {"kind": "free|host_free|event_sync|stream_sync|module", "frame": "cublasDestroy",
//               "sites": [1, null], "optional": true, "at": "here"}
// expect control: nothing
#include <cublas_v2.h>

#include "cases.hpp"

namespace {

void capture_beside(bool destroy) {
  const CUstream captured = cases::stream(), other = cases::stream();
  cublasHandle_t handle = nullptr;
  {
    const cases::setup labelled;
    MUST(cublasCreate(&handle));
    cases::idle();
  }
  CUgraph graph = nullptr;
  MUST(cuStreamBeginCapture(captured, CU_STREAM_CAPTURE_MODE_GLOBAL));  // here begin
  cases::small_kernel(captured);
  cases::worker("destroyer", [=] {
    cases::small_kernel(other);
    if (destroy) cublasDestroy(handle);  // here
  }).join();
  const CUresult ended = cuStreamEndCapture(captured, &graph);
  cases::expect(ended == (destroy ? CUDA_ERROR_STREAM_CAPTURE_INVALIDATED : CUDA_SUCCESS),
                destroy ? "the capture is invalidated" : "the capture survives");
  if (graph != nullptr) MUST(cuGraphDestroy(graph));
  cudaGetLastError();  // of the calls that failed in the capture
  const cases::setup labelled;
  if (!destroy) MUST(cublasDestroy(handle));
}

void destroy_beside() {
  capture_beside(true);
}
void launch_beside() {
  capture_beside(false);
}

HOSTWAIT_CASE("LB-02", destroy_beside, launch_beside);

}  // namespace
