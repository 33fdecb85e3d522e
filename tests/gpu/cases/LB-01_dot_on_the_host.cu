// SPDX-License-Identifier: Apache-2.0
// Copyright The hostwait authors
// LB-01, unexpected_sync, CUDA.jl: https://github.com/JuliaGPU/CUDA.jl/issues/2571
// A dot product with its result on the host waits inside the closed library; the program makes no
// call of CUDA that waits. The finding is the driver call below cublasSdot, at the user's line.
// With the result in device memory: silent.
//
// expect case: {"kind": "stream_sync|async_copy|copy|event_sync", "verdict": "stream|legacy",
//               "calls": [1, 2], "waited": [1, 2], "above_ms": 5, "frame": "cublasSdot", "sites":
//               [1, 2], "at": "here"}
// expect control: nothing
#include <cublas_v2.h>

#include "cases.hpp"

namespace {

constexpr int count = 1024;

void dot(cublasPointerMode_t mode) {
  const CUstream s = cases::stream();
  const float* x = reinterpret_cast<const float*>(cases::device(count * sizeof(float)));
  float on_host = 0;
  float* result = mode == CUBLAS_POINTER_MODE_HOST
                      ? &on_host
                      : reinterpret_cast<float*>(cases::device(sizeof(float)));
  cublasHandle_t handle = nullptr;
  {
    const cases::setup labelled;
    MUST(cublasCreate(&handle));
    MUST(cublasSetStream(handle, s));
    MUST(cublasSetPointerMode(handle, mode));
    MUST(cublasSdot(handle, count, x, 1, x, 1, result));  // first use
    cases::idle();
  }
  cases::busy(s);
  MUST(cublasSdot(handle, count, x, 1, x, 1, result));  // here
  cases::idle();
  const cases::setup labelled;
  MUST(cublasDestroy(handle));
}

void to_the_host() {
  dot(CUBLAS_POINTER_MODE_HOST);
}
void to_the_device() {
  dot(CUBLAS_POINTER_MODE_DEVICE);
}

HOSTWAIT_CASE("LB-01", to_the_host, to_the_device);

}  // namespace
