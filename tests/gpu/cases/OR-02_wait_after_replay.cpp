// SPDX-License-Identifier: Apache-2.0
// Copyright The hostwait authors
// OR-02, unexpected_sync, ONNX Runtime: https://github.com/microsoft/onnxruntime/pull/28686
// The option "do not synchronize" was ignored when a captured graph was replayed. The wait after
// the launch is the finding; the graph's launch never is.
//
// expect case: {"kind": "stream_sync", "call": "cuStreamSynchronize", "verdict": "stream",
//               "calls": 3, "waited": 3, "at": "here"}
// expect control: nothing
#include "cases.hpp"

namespace {

void replay(bool wait) {
  const CUstream s = cases::stream();
  CUgraph graph = nullptr;
  CUgraphExec ready = nullptr;
  MUST(cuStreamBeginCapture(s, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL));
  cases::busy(s, 5);
  MUST(cuStreamEndCapture(s, &graph));
  MUST(cuGraphInstantiate(&ready, graph, 0));
  for (int i = 0; i < 3; ++i) {
    MUST(cuGraphLaunch(ready, s));
    if (wait) MUST(cuStreamSynchronize(s));  // here
  }
  cases::idle();
  MUST(cuGraphExecDestroy(ready));
  MUST(cuGraphDestroy(graph));
}

void with_wait() {
  replay(true);
}
void without_wait() {
  replay(false);
}

HOSTWAIT_CASE("OR-02", with_wait, without_wait);

}  // namespace
