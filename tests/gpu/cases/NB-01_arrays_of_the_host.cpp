// SPDX-License-Identifier: Apache-2.0
// Copyright The hostwait authors
// NB-01, unexpected_sync, Numba: https://github.com/numba/numba/issues/6904
// A kernel launched on host arrays pays a copy each way and the wait for it, at every launch. The
// driver calls behind such a launch: both copies wait by name. With arrays that stay on the
// device, nothing.
//
// expect case: {"kind": "copy", "call": "cuMemcpyHtoD", "verdict": "legacy", "calls": 3, "at":
//               "upload", "frame": "launch_on_host_array"}
// expect case: {"kind": "copy", "call": "cuMemcpyDtoH", "verdict": "legacy", "calls": 3,
//               "waited": 3, "at": "download", "frame": "launch_on_host_array"}
// expect control: nothing
#include "cases.hpp"

namespace {

constexpr size_t bytes = 4096;

void launch_on_host_array(CUdeviceptr scratch, void* array) {
  MUST(cuMemcpyHtoD(scratch, array, bytes));  // here upload
  cases::busy(nullptr, 5);
  MUST(cuMemcpyDtoH(array, scratch, bytes));  // here download
}

void host_arrays() {
  const CUdeviceptr scratch = cases::device(bytes);
  void* array = cases::pageable(bytes);
  for (int i = 0; i < 3; ++i) launch_on_host_array(scratch, array);
}

void device_arrays() {
  for (int i = 0; i < 3; ++i) cases::busy(nullptr, 5);
}

HOSTWAIT_CASE("NB-01", host_arrays, device_arrays);

}  // namespace
