// SPDX-License-Identifier: Apache-2.0
// Copyright The hostwait authors
// CP-04, false_positive, CuPy: https://github.com/cupy/cupy/issues/2946
// Names of calls give false alarms and misses; memory and pending work decide. One name
// (cuMemcpyAsync), three kinds of memory: only the copies that do stop the host are findings. A
// copy that would wait and finds the device idle is latent, not waited: the reporters would
// rather not see it at all, hostwait counts it, because it costs as soon as there is work.
//
// expect case: {"kind": "async_copy", "call": "cuMemcpyAsync", "verdict": "stream", "calls": 1,
//               "waited": 1, "at": "pageable"}
// expect case: {"kind": "async_copy", "call": "cuMemcpyAsync", "verdict": "stream", "calls": 1,
//               "waited": 0, "latent": 1, "at": "idle"}
// expect control: nothing
#include "cases.hpp"

namespace {

constexpr size_t bytes = 4096;

CUdeviceptr at(void* memory) {
  return reinterpret_cast<CUdeviceptr>(memory);
}

void waits() {
  const CUstream s = cases::stream();
  const CUdeviceptr on_device = cases::device(bytes);
  const CUdeviceptr ordinary = at(cases::pageable(bytes));
  cases::busy(s);
  MUST(cuMemcpyAsync(ordinary, on_device, bytes, s));  // here pageable
  cases::idle();
  MUST(cuMemcpyAsync(ordinary, on_device, bytes, s));  // here idle
}

void does_not_wait() {
  const CUstream s = cases::stream();
  const CUdeviceptr one = cases::device(bytes), other = cases::device(bytes);
  const CUdeviceptr page_locked = at(cases::pinned(bytes));
  cases::busy(s);
  MUST(cuMemcpyAsync(page_locked, one, bytes, s));
  MUST(cuMemcpyAsync(one, page_locked, bytes, s));
  MUST(cuMemcpyAsync(other, one, bytes, s));
  MUST(cuMemcpyDtoD(other, one, bytes));
}

HOSTWAIT_CASE("CP-04", waits, does_not_wait);

}  // namespace
