// SPDX-License-Identifier: Apache-2.0
// Copyright The hostwait authors
// LL-04, false_positive, vLLM: https://github.com/vllm-project/vllm/pull/51455
// A process-wide guard punishes a background thread for an allowed wait, and an allow block in
// one thread disarms all. hostwait's frames belong to a thread: the guarded thread's wait is
// refused, the worker's is made; the worker's allow frame does not reach the guarded thread.
//
// expect case: {"kind": "stream_sync", "verdict": "stream", "calls": 1, "refused": 1,
//               "violations": 1, "at": "guarded"}
// expect case: {"kind": "stream_sync", "verdict": "stream", "calls": 1, "waited": 1, "refused":
//               0, "violations": 0, "at": "worker"}
// expect control: nothing
#include "cases.hpp"

namespace {

// A frame of the thread, without a label of its own, over the process frame with the label.
void guarded_wait(CUstream mine, CUresult expected) {
  const int guard = hostwait_push(HOSTWAIT_ERROR, HOSTWAIT_SYNC);
  const CUresult result = cuStreamSynchronize(mine);  // here guarded
  hostwait_pop(guard);
  cases::expect(!hostwait_present() || result == expected, "the guarded wait is refused");
}

void worker_beside_guard() {
  const CUstream mine = cases::stream(), other = cases::stream();
  cases::busy(mine);
  cases::busy(other);
  std::thread background = cases::worker("background", [other] {
    MUST(cuStreamSynchronize(other));  // here worker
  });
  guarded_wait(mine, CUDA_ERROR_NOT_PERMITTED);
  background.join();
}

void allowed_worker() {
  const CUstream other = cases::stream();
  cases::busy(other);
  std::thread background = cases::worker("background", [other] {
    const int allowed = hostwait_push(HOSTWAIT_ALLOW, HOSTWAIT_ALL);
    MUST(cuStreamSynchronize(other));
    hostwait_pop(allowed);
  });
  background.join();
  cases::expect(!hostwait_present() || hostwait_action_of(HOSTWAIT_STREAM_SYNC) == HOSTWAIT_LOG,
                "the worker's allow frame stays in its thread");
}

HOSTWAIT_CASE("LL-04", worker_beside_guard, allowed_worker);

}  // namespace
