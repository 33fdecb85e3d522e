// SPDX-License-Identifier: Apache-2.0
// Copyright The hostwait authors
// NB-04, unexpected_sync, Numba: https://github.com/numba/numba/issues/2735
// Kernels built for debugging read an error code back on the legacy stream after each launch, so
// that work on two blocking streams runs one after the other. One finding in the launcher, a call
// per launch, verdict legacy. Release builds: nothing.
//
// expect case: {"kind": "copy", "call": "cuMemcpyDtoH", "verdict": "legacy", "calls": 4,
//               "waited": 4, "at": "here", "frame": "launch"}
// expect control: nothing
#include "cases.hpp"

namespace {

void launch(CUstream s, CUdeviceptr error_code, bool debug) {
  cases::busy(s, 5);
  int code = 0;
  if (debug) MUST(cuMemcpyDtoH(&code, error_code, sizeof code));  // here
}

void on_two_streams(bool debug) {
  const CUstream s[] = {cases::blocking_stream(), cases::blocking_stream()};
  const CUdeviceptr error_code = cases::device(4);
  for (int i = 0; i < 4; ++i) launch(s[i % 2], error_code, debug);
}

void debug_build() {
  on_two_streams(true);
}
void release_build() {
  on_two_streams(false);
}

HOSTWAIT_CASE("NB-04", debug_build, release_build);

}  // namespace
