// SPDX-License-Identifier: Apache-2.0
// Copyright The hostwait authors
// CM-01, missed_detection, cumo: https://github.com/sonots/cumo/pull/247
// The project's list of calls missed copies that a measurement found. hostwait needs no list of
// the library's functions: the same copy is a wait behind work, and latent (with the time of the
// call itself not called waiting) on an idle device.
//
// expect case: {"kind": "copy", "call": "cuMemcpyDtoH", "verdict": "legacy", "calls": 1,
//               "waited": 1, "above_ms": 5, "at": "behind"}
// expect case: {"kind": "copy", "call": "cuMemcpyDtoH", "verdict": "legacy", "calls": 1,
//               "waited": 0, "latent": 1, "at": "idle"}
// expect control: nothing
#include "cases.hpp"

namespace {

void index_on_the_host() {
  const CUdeviceptr indices = cases::device(4096);
  void* host = cases::pageable(4096);
  cases::busy(nullptr, 10);
  MUST(cuMemcpyDtoH(host, indices, 4096));  // here behind
  MUST(cuMemcpyDtoH(host, indices, 4096));  // here idle
}

void index_on_the_device() {
  const CUdeviceptr indices = cases::device(4096), found = cases::device(4096);
  cases::busy(nullptr, 10);
  cases::small_kernel(nullptr);
  MUST(cuMemcpyDtoD(found, indices, 4096));
}

HOSTWAIT_CASE("CM-01", index_on_the_host, index_on_the_device);

}  // namespace
