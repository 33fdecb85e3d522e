// SPDX-License-Identifier: Apache-2.0
// Copyright The hostwait authors
// DR-11, capture, CUDA.jl: https://github.com/JuliaGPU/CUDA.jl/issues/1229
// An upload during a capture fails because the library first asks whether the stream is idle. A
// query waits for nothing and is no finding; the capture that it broke is one, with both lines.
// Asking whether the stream captures is harmless, and the only question that hostwait itself asks
// then.
//
// expect captures: {"call": "cuStreamQuery", "mode": "global", "begun_at": "begin", "at": "here"}
// expect case: nothing
// expect control: nothing
#include "cases.hpp"

namespace {

void capture_and(bool query) {
  const CUstream s = cases::stream();
  CUgraph graph = nullptr;
  MUST(cuStreamBeginCapture(s, CU_STREAM_CAPTURE_MODE_GLOBAL));  // here begin
  cases::small_kernel(s);
  if (query) {
    const CUresult result = cuStreamQuery(s);  // here
    cases::expect(result == CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED, "the query returns 900");
  }
  CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_NONE;
  MUST(cuStreamIsCapturing(s, &status));
  const CUresult ended = cuStreamEndCapture(s, &graph);
  cases::expect(ended == (query ? CUDA_ERROR_STREAM_CAPTURE_INVALIDATED : CUDA_SUCCESS),
                query ? "the capture is invalidated" : "the capture survives");
  if (graph != nullptr) MUST(cuGraphDestroy(graph));
}

void with_query() {
  capture_and(true);
}
void without_query() {
  capture_and(false);
}

HOSTWAIT_CASE("DR-11", with_query, without_query);

}  // namespace
