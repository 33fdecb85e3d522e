// SPDX-License-Identifier: Apache-2.0
// Copyright The hostwait authors
// HP-04, unexpected_sync, AMReX: https://github.com/AMReX-Codes/amrex/pull/2754
// Device-wide waits disturb other libraries, and what the blocking copy does depends on the
// memory. A device-wide wait stands behind the other library's stream (context). The copy waits
// for the legacy stream where an end is host memory, for nothing between device buffers
// (control).
//
// expect case: {"kind": "copy", "call": "cuMemcpy", "verdict": "legacy", "calls": 1, "waited": 1,
//               "at": "pinned"}
// expect case: {"kind": "device_sync", "call": "cuCtxSynchronize", "verdict": "context", "calls":
//               1, "waited": 1, "at": "device"}
// expect control: nothing
#include "cases.hpp"

namespace {

constexpr size_t bytes = 4096;

void wide() {
  const CUstream other_library = cases::stream();
  const CUdeviceptr ours = cases::device(bytes);
  const CUdeviceptr host = reinterpret_cast<CUdeviceptr>(cases::pinned(bytes));
  cases::busy(nullptr, 20);
  MUST(cuMemcpy(host, ours, bytes));  // here pinned
  cases::busy(other_library, 20);
  MUST(cuCtxSynchronize());  // here device
}

void narrow() {
  const CUstream other_library = cases::stream();
  const CUdeviceptr ours = cases::device(bytes), copy = cases::device(bytes);
  cases::busy(nullptr, 20);
  cases::busy(other_library, 20);
  MUST(cuMemcpy(copy, ours, bytes));
}

HOSTWAIT_CASE("HP-04", wide, narrow);

}  // namespace
