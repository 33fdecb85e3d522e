// SPDX-License-Identifier: Apache-2.0
// Copyright The hostwait authors
// RA-01, unexpected_sync, cuDF: https://github.com/NVIDIA/cudf/issues/11942
// A helper kernel slips onto stream 0 between two kernels on the caller's stream. The maintainers
// want a rule "no work on the default stream"; hostwait is about stopped hosts and has no such
// rule: launches are silent. What it does show is the place where the host pays: a wait for
// stream 0, with verdict legacy.
//
// expect case: {"kind": "stream_sync", "call": "cuStreamSynchronize", "verdict": "legacy",
//               "calls": 1, "waited": 1, "at": "here"}
// expect control: nothing
#include "cases.hpp"

namespace {

void library_function(CUstream s) {
  cases::small_kernel(s);
  cases::small_kernel(CU_STREAM_LEGACY);
  cases::small_kernel(s);
}

void wait_for_default() {
  const CUstream s = cases::blocking_stream();
  cases::busy(s);
  library_function(s);
  MUST(cuStreamSynchronize(CU_STREAM_LEGACY));  // here
}

void launches_only() {
  const CUstream s = cases::blocking_stream();
  cases::busy(s);
  library_function(s);
}

HOSTWAIT_CASE("RA-01", wait_for_default, launches_only);

}  // namespace
