// SPDX-License-Identifier: Apache-2.0
// Copyright The hostwait authors
// PT-19, unexpected_sync, PyTorch: https://github.com/pytorch/pytorch/issues/47953
// Linear algebra on small matrices is slow, because a handle is made and destroyed for each call
// and destroying it waits for the device: a finding below cublasDestroy, which waits for another
// stream's work. What else the library frees there may be findings, too. One handle that is kept:
// silent.
//
// expect case: {"kind": "device_sync", "call": "cuCtxSynchronize", "verdict": "context",
//               "waited": [1, 4], "above_ms": 5, "frame": "cublasDestroy", "sites": [1, null],
//               "at": "here"}
// expect case: {"kind": "free|host_free|event_sync|stream_sync|module", "frame": "cublasDestroy",
//               "sites": [1, null], "optional": true, "at": "here"}
// expect control: nothing
#include <cublas_v2.h>

#include "cases.hpp"

namespace {

constexpr int n = 32;

void multiply(cublasHandle_t handle, CUstream s, float* a) {
  const float one = 1, zero = 0;
  MUST(cublasSetStream(handle, s));
  MUST(cublasSgemm(handle, CUBLAS_OP_N, CUBLAS_OP_N, n, n, n, &one, a, n, a, n, &zero, a + n * n,
                   n));
}

void handle_per_call() {
  const CUstream s = cases::stream(), other = cases::stream();
  float* a = reinterpret_cast<float*>(cases::device(2 * n * n * sizeof(float)));
  cublasHandle_t handle = nullptr;
  {
    const cases::setup labelled;
    MUST(cublasCreate(&handle));
    multiply(handle, s, a);
  }
  cases::busy(other);
  MUST(cublasDestroy(handle));  // here
}

void one_handle() {
  const CUstream s = cases::stream(), other = cases::stream();
  float* a = reinterpret_cast<float*>(cases::device(2 * n * n * sizeof(float)));
  cublasHandle_t handle = nullptr;
  {
    const cases::setup labelled;
    MUST(cublasCreate(&handle));
    multiply(handle, s, a);
    cases::idle();
  }
  cases::busy(other);
  for (int i = 0; i < 4; ++i) multiply(handle, s, a);
  cases::idle();
  const cases::setup labelled;
  MUST(cublasDestroy(handle));
}

HOSTWAIT_CASE("PT-19", handle_per_call, one_handle);

}  // namespace
