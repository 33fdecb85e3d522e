// SPDX-License-Identifier: Apache-2.0
// Copyright The hostwait authors
// CV-03, unexpected_sync, OpenCV: https://github.com/opencv/opencv/issues/5279
// Streams that cannot be made non-blocking are ordered with everyone's default stream. The host
// pays where it waits for such a stream: it stands behind a third party's kernel on stream 0. The
// same wait for a non-blocking stream has nothing before it. hostwait gives both the verdict
// stream (the wait is for that stream); the time tells them apart, the stream's flag is not
// shown.
//
// expect case: {"kind": "stream_sync", "verdict": "stream", "calls": 1, "waited": 1, "above_ms":
//               15, "at": "blocking"}
// expect case: {"kind": "stream_sync", "verdict": "stream", "calls": 1, "below_ms": 10, "at":
//               "non_blocking"}
// expect control: nothing
#include "cases.hpp"

namespace {

void wait_for_both() {
  const CUstream free = cases::stream(), tied = cases::blocking_stream();
  cases::busy(nullptr, 30);
  cases::small_kernel(free);
  cases::small_kernel(tied);
  MUST(cuStreamSynchronize(free));  // here non_blocking
  MUST(cuStreamSynchronize(tied));  // here blocking
}

void launches_only() {
  const CUstream free = cases::stream(), tied = cases::blocking_stream();
  cases::busy(nullptr, 30);
  cases::small_kernel(free);
  cases::small_kernel(tied);
}

HOSTWAIT_CASE("CV-03", wait_for_both, launches_only);

}  // namespace
