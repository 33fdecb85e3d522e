// SPDX-License-Identifier: Apache-2.0
// Copyright The hostwait authors
// DR-01, false_positive, CUDA driver:
// https://forums.developer.nvidia.com/t/device-memory-allocation-implicit-synchronization/110906
// Lists of implicitly synchronizing calls name allocation; measured, it does not stop the host.
// Freeing does, for every stream of the context. So hostwait is silent about the first and names
// the second.
//
// expect case: {"kind": "free", "call": "cuMemFree", "verdict": "context", "calls": 1, "waited":
//               1, "at": "here"}
// expect control: nothing
#include "cases.hpp"

namespace {

constexpr size_t bytes = 1 << 20;

void allocate_and_free() {
  const CUstream s[] = {cases::stream(), cases::stream(), cases::stream(), cases::stream()};
  CUdeviceptr made = 0;
  for (const CUstream each : s) cases::busy(each);
  MUST(cuMemAlloc(&made, bytes));
  MUST(cuMemFree(made));  // here
}

void allocate_only() {
  const CUstream s[] = {cases::stream(), cases::stream(), cases::stream(), cases::stream()};
  CUdeviceptr made[4];
  for (const CUstream each : s) cases::busy(each);
  for (CUdeviceptr& each : made) MUST(cuMemAlloc(&each, bytes));
  const cases::setup labelled;
  for (const CUdeviceptr each : made) MUST(cuMemFree(each));
}

HOSTWAIT_CASE("DR-01", allocate_and_free, allocate_only);

}  // namespace
