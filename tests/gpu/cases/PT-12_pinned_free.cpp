// SPDX-License-Identifier: Apache-2.0
// Copyright The hostwait authors
// PT-12, unexpected_sync, PyTorch: https://github.com/pytorch/pytorch/pull/275
// Freeing and unregistering page-locked memory wait for every stream, non-blocking ones too
// (measured). A cache that keeps the block, as the reporters built, is silent. The pinned size
// that the reporter would like to see is in the record (bytes of the site), not in the report.
//
// expect case: {"kind": "host_free", "call": "cuMemFreeHost", "verdict": "context", "calls": 1,
//               "waited": 1, "at": "freed"}
// expect case: {"kind": "host_free", "call": "cuMemHostUnregister", "verdict": "context",
//               "calls": 1, "waited": 1, "at": "unregistered"}
// expect control: nothing
#include "cases.hpp"

namespace {

constexpr size_t bytes = 1 << 20;

void free_behind_work() {
  const CUstream s = cases::stream();
  void *block = nullptr, *plain = cases::pageable(bytes);
  MUST(cuMemHostAlloc(&block, bytes, 0));
  MUST(cuMemHostRegister(plain, bytes, 0));
  cases::busy(s);
  MUST(cuMemFreeHost(block));  // here freed
  cases::busy(s);
  MUST(cuMemHostUnregister(plain));  // here unregistered
}

void keep_the_block() {
  const CUstream s = cases::stream();
  void* block = cases::pinned(bytes);
  const CUdeviceptr to = cases::device(bytes);
  cases::busy(s);
  for (int i = 0; i < 4; ++i) MUST(cuMemcpyHtoDAsync(to, block, bytes, s));
}

HOSTWAIT_CASE("PT-12", free_behind_work, keep_the_block);

}  // namespace
