// SPDX-License-Identifier: Apache-2.0
// Copyright The hostwait authors
// CV-06, false_positive, nvvl: https://github.com/NVIDIA/nvvl/pull/69
// A decoder's blocking stream and a framework's default stream run one after the other on the
// device. The host is never stopped: no finding for a whole frame of decoding. What the host does
// wait for, an event at the end, is one finding.
//
// expect case: {"kind": "event_sync", "call": "cuEventSynchronize", "verdict": "stream", "calls":
//               1, "waited": 1, "at": "here"}
// expect control: nothing
#include "cases.hpp"

namespace {

CUevent decode_frames() {
  const CUstream decode = cases::blocking_stream();
  const CUevent decoded = cases::event();
  for (int frame = 0; frame < 4; ++frame) {
    cases::busy(decode, 5);
    cases::busy(nullptr, 5);
    MUST(cuEventRecord(decoded, decode));
  }
  return decoded;
}

void decode_and_wait() {
  const CUevent decoded = decode_frames();
  MUST(cuEventSynchronize(decoded));  // here
}

void decode_only() {
  decode_frames();
}

HOSTWAIT_CASE("CV-06", decode_and_wait, decode_only);

}  // namespace
