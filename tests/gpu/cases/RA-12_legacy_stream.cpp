// SPDX-License-Identifier: Apache-2.0
// Copyright The hostwait authors
// RA-12, unexpected_sync, XGBoost: https://github.com/dmlc/xgboost/pull/9396
// Work on the legacy stream orders itself with every blocking stream. Launches there do not stop
// the host, and hostwait does not claim that they do. A wait for the null stream has verdict
// legacy in a program with the legacy default stream; in the per-thread form of the same call it
// is the thread's own stream, which has nothing to wait for.
//
// expect case: {"kind": "stream_sync", "call": "cuStreamSynchronize", "verdict": "legacy",
//               "calls": 1, "waited": 1, "above_ms": 15, "at": "legacy"}
// expect case: {"kind": "stream_sync", "call": "cuStreamSynchronize", "verdict": "stream",
//               "calls": 1, "waited": 0, "latent": 1, "at": "per_thread"}
// expect control: nothing
#include "cases.hpp"

namespace {

void wait_for_default_streams() {
  const CUstream other = cases::blocking_stream();
  cases::busy(other, 30);
  MUST(cuStreamSynchronize(CU_STREAM_PER_THREAD));  // here per_thread
  MUST(cuStreamSynchronize(nullptr));               // here legacy
}

void launches_only() {
  const CUstream other = cases::blocking_stream();
  cases::busy(other, 30);
  cases::small_kernel(nullptr);
  cases::small_kernel(CU_STREAM_PER_THREAD);
}

HOSTWAIT_CASE("RA-12", wait_for_default_streams, launches_only);

}  // namespace
