// SPDX-License-Identifier: Apache-2.0
// Copyright The hostwait authors
// RA-10, unexpected_sync, rapidsmpf: https://github.com/rapidsai/rapidsmpf/issues/216
// A send waits for the whole device, and so for a long kernel that has nothing to do with its
// data: verdict context, and the time is that of the other stream. hostwait does not split the
// time by stream. Ordering the send's stream on the device stops nobody.
//
// expect case: {"kind": "device_sync", "call": "cuCtxSynchronize", "verdict": "context", "calls":
//               1, "waited": 1, "above_ms": 15, "at": "here"}
// expect control: nothing
#include "cases.hpp"

namespace {

void send_after_device_wait() {
  const CUstream unrelated = cases::stream(), data = cases::stream();
  cases::busy(unrelated, 30);
  cases::small_kernel(data);
  MUST(cuCtxSynchronize());  // here
}

void send_in_order() {
  const CUstream unrelated = cases::stream(), data = cases::stream(), send = cases::stream();
  cases::busy(unrelated, 30);
  cases::small_kernel(data);
  cases::order(data, send);
  cases::small_kernel(send);
}

HOSTWAIT_CASE("RA-10", send_after_device_wait, send_in_order);

}  // namespace
