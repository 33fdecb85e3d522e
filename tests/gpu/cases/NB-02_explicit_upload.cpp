// SPDX-License-Identifier: Apache-2.0
// Copyright The hostwait authors
// NB-02, false_positive, Numba: https://github.com/numba/numba/pull/7064
// A warning in a shared helper also fired for uploads that the user asked for. hostwait tells
// places apart: an element write and a launch on a host array are two findings though both go
// through one helper, and the explicit upload can be allowed on its own.
//
// expect case: {"kind": "copy", "call": "cuMemcpyHtoD", "verdict": "legacy", "calls": 1, "at":
//               "helper", "frame": "write_element"}
// expect case: {"kind": "copy", "call": "cuMemcpyHtoD", "verdict": "legacy", "calls": 1, "at":
//               "helper", "frame": "launch_on_host_array"}
// expect control: nothing
#include "cases.hpp"

namespace {

constexpr size_t bytes = 4096;

void shared_helper(CUdeviceptr to, const void* from, size_t size) {
  MUST(cuMemcpyHtoD(to, from, size));  // here helper
}

void write_element(CUdeviceptr array) {
  const int two = 2;
  shared_helper(array, &two, sizeof two);
}

void launch_on_host_array(CUdeviceptr scratch, const void* array) {
  shared_helper(scratch, array, bytes);
  cases::small_kernel(nullptr);
}

void to_device(CUdeviceptr to, const void* from) {
  const int allowed = hostwait_push_label(HOSTWAIT_ALLOW, HOSTWAIT_ALL, "upload asked for");
  shared_helper(to, from, bytes);
  hostwait_pop(allowed);
}

void three_places() {
  const CUdeviceptr array = cases::device(bytes);
  const void* host = cases::pageable(bytes);
  to_device(array, host);
  write_element(array);
  launch_on_host_array(array, host);
}

void upload_only() {
  const CUdeviceptr array = cases::device(bytes);
  to_device(array, cases::pageable(bytes));
}

HOSTWAIT_CASE("NB-02", three_places, upload_only);

}  // namespace
