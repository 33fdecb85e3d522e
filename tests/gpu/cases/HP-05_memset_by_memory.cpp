// SPDX-License-Identifier: Apache-2.0
// Copyright The hostwait authors
// HP-05, missing_sync, alpaka: https://github.com/alpaka-group/alpaka/issues/851
// A "blocking" memset does not block on device memory, on which code relied, and does on pinned
// and managed memory (measured).
//
// expect case: {"kind": "memset", "call": "cuMemsetD8", "verdict": "legacy", "calls": 1,
//               "waited": 1, "at": "pinned"}
// expect case: {"kind": "memset", "call": "cuMemsetD8", "verdict": "legacy", "calls": 1,
//               "waited": 1, "at": "managed"}
// expect control: nothing
#include "cases.hpp"

namespace {

constexpr size_t bytes = 4096;

void host_memory() {
  const CUdeviceptr page_locked = reinterpret_cast<CUdeviceptr>(cases::pinned(bytes));
  const CUdeviceptr shared = cases::managed(bytes);
  cases::busy(nullptr, 20);
  MUST(cuMemsetD8(page_locked, 0, bytes));  // here pinned
  cases::busy(nullptr, 20);
  MUST(cuMemsetD8(shared, 0, bytes));  // here managed
}

void device_memory() {
  const CUdeviceptr ours = cases::device(bytes);
  cases::busy(nullptr, 20);
  MUST(cuMemsetD8(ours, 0, bytes));
}

HOSTWAIT_CASE("HP-05", host_memory, device_memory);

}  // namespace
