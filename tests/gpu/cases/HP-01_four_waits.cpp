// SPDX-License-Identifier: Apache-2.0
// Copyright The hostwait authors
// HP-01, unexpected_sync, Kokkos: https://github.com/kokkos/kokkos/issues/2860
// A copy with an explicit execution space waits four times. All four are findings of one
// function; only the first has something to wait for, the others are latent: they will cost once
// the first is gone.
//
// expect case: {"kind": "stream_sync", "verdict": "stream", "calls": 1, "waited": 1, "at":
//               "first", "frame": "deep_copy"}
// expect case: {"kind": "stream_sync", "verdict": "stream", "calls": 1, "waited": 0, "latent": 1,
//               "at": "internal", "frame": "deep_copy"}
// expect case: {"kind": "stream_sync", "verdict": "stream", "calls": 1, "below_ms": 5, "at":
//               "third", "frame": "deep_copy"}
// expect case: {"kind": "stream_sync", "verdict": "stream", "calls": 1, "waited": 0, "latent": 1,
//               "at": "fourth", "frame": "deep_copy"}
// expect control: nothing
#include "cases.hpp"

namespace {

constexpr size_t bytes = 4096;

void deep_copy(CUstream s, CUstream internal, CUdeviceptr to, const void* from) {
  MUST(cuStreamSynchronize(s));         // here first
  MUST(cuStreamSynchronize(internal));  // here internal
  MUST(cuMemcpyHtoDAsync(to, from, bytes, s));
  MUST(cuStreamSynchronize(s));  // here third
  MUST(cuStreamSynchronize(s));  // here fourth
}

void waits() {
  const CUstream s = cases::stream(), internal = cases::stream();
  const CUdeviceptr to = cases::device(bytes);
  const void* from = cases::pinned(bytes);
  cases::busy(s);
  deep_copy(s, internal, to, from);
}

void ordered() {
  const CUstream s = cases::stream(), internal = cases::stream();
  const CUdeviceptr to = cases::device(bytes);
  const void* from = cases::pinned(bytes);
  cases::busy(s);
  cases::order(internal, s);
  MUST(cuMemcpyHtoDAsync(to, from, bytes, s));
}

HOSTWAIT_CASE("HP-01", waits, ordered);

}  // namespace
