// SPDX-License-Identifier: Apache-2.0
// Copyright The hostwait authors
// PT-30, unexpected_sync, AITemplate: https://github.com/facebookincubator/AITemplate/pull/438
// A blocking copy of four bytes runs on the legacy stream and so waits for other blocking
// streams, too: verdict legacy. The asynchronous form with a wait for its own stream has verdict
// stream, and does not stand behind the long kernel of the other one. The control reads nothing
// back.
//
// expect case: {"kind": "copy", "call": "cuMemcpyDtoH", "verdict": "legacy", "calls": 1,
//               "waited": 1, "above_ms": 15, "at": "legacy"}
// expect case: {"kind": "async_copy", "call": "cuMemcpyDtoHAsync", "verdict": "stream", "calls":
//               1, "below_ms": 10, "at": "own"}
// expect control: nothing
#include "cases.hpp"

namespace {

void read_back() {
  const CUstream long_one = cases::blocking_stream(), short_one = cases::stream();
  const CUdeviceptr count = cases::device(4);
  int selected = 0;
  cases::busy(long_one, 30);
  cases::busy(short_one, 1);
  MUST(cuMemcpyDtoHAsync(&selected, count, 4, short_one));  // here own
  cases::busy(long_one, 30);
  MUST(cuMemcpyDtoH(&selected, count, 4));  // here legacy
}

void stay_on_the_device() {
  const CUstream long_one = cases::blocking_stream(), short_one = cases::stream();
  const CUdeviceptr count = cases::device(4), kept = cases::device(4);
  cases::busy(long_one, 30);
  cases::busy(short_one, 1);
  MUST(cuMemcpyDtoDAsync(kept, count, 4, short_one));
}

HOSTWAIT_CASE("PT-30", read_back, stay_on_the_device);

}  // namespace
