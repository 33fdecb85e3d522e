// SPDX-License-Identifier: Apache-2.0
// Copyright The hostwait authors
// OR-01, unexpected_sync, ONNX Runtime: https://github.com/microsoft/onnxruntime/issues/12216
// Every run of the model ends with a wait for the caller's own stream. One finding at the
// wrapper's line with as many calls as runs; without the final wait, nothing.
//
// expect case: {"kind": "stream_sync", "call": "cuStreamSynchronize", "verdict": "stream",
//               "calls": 5, "waited": 5, "at": "here", "frame": "run_model"}
// expect control: nothing
#include "cases.hpp"

namespace {

void run_model(CUstream s, bool wait) {
  cases::busy(s, 5);
  if (wait) MUST(cuStreamSynchronize(s));  // here
}

void with_wait() {
  const CUstream s = cases::stream();
  for (int i = 0; i < 5; ++i) run_model(s, true);
}
void without_wait() {
  const CUstream s = cases::stream();
  for (int i = 0; i < 5; ++i) run_model(s, false);
}

HOSTWAIT_CASE("OR-01", with_wait, without_wait);

}  // namespace
