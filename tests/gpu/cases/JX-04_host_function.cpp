// SPDX-License-Identifier: Apache-2.0
// Copyright The hostwait authors
// JX-04, unexpected_sync, JAX: https://github.com/jax-ml/jax/issues/36651
// A download ends in a host function that copies out of a staging buffer, and the caller sleeps
// on a condition variable. That sleep is no driver call: hostwait is silent about it
// (docs/limits.md), which the control holds. The form with ordinary memory is a finding.
//
// expect case: {"kind": "async_copy", "call": "cuMemcpyDtoHAsync", "verdict": "stream", "calls":
//               1, "waited": 1, "at": "here"}
// expect control: nothing
#include <condition_variable>
#include <cstring>
#include <mutex>

#include "cases.hpp"

namespace {

constexpr size_t bytes = 4096;

struct download {
  std::mutex mutex;
  std::condition_variable ready;
  bool done = false;
  void *staging = nullptr, *result = nullptr;
};

void finish(void* data) {
  auto* one = static_cast<download*>(data);
  memcpy(one->result, one->staging, bytes);
  const std::lock_guard<std::mutex> held(one->mutex);
  one->done = true;
  one->ready.notify_one();
}

void ordinary_memory() {
  const CUstream s = cases::stream();
  const CUdeviceptr from = cases::device(bytes);
  void* result = cases::pageable(bytes);
  cases::busy(s);
  MUST(cuMemcpyDtoHAsync(result, from, bytes, s));  // here
}

void staged() {
  const CUstream s = cases::stream();
  const CUdeviceptr from = cases::device(bytes);
  download one;
  one.staging = cases::pinned(bytes);
  one.result = cases::pageable(bytes);
  cases::busy(s);
  MUST(cuMemcpyDtoHAsync(one.staging, from, bytes, s));
  MUST(cuLaunchHostFunc(s, finish, &one));
  std::unique_lock<std::mutex> held(one.mutex);
  one.ready.wait(held, [&one] { return one.done; });
}

HOSTWAIT_CASE("JX-04", ordinary_memory, staged);

}  // namespace
