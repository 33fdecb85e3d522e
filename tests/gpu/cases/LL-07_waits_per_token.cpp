// SPDX-License-Identifier: Apache-2.0
// Copyright The hostwait authors
// LL-07, unexpected_sync, llama.cpp: https://github.com/ggml-org/llama.cpp/pull/17795
// Between two tokens there are six pairs of copy and wait. One finding with its count: six per
// token. The copies from pinned memory are silent, the waits are not; most are latent, since the
// first one of a token empties the stream. The control copies, orders on the device and launches.
//
// expect case: {"kind": "stream_sync", "call": "cuStreamSynchronize", "verdict": "stream",
//               "calls": 18, "waited": [3, 18], "at": "here"}
// expect control: nothing
#include "cases.hpp"

namespace {

constexpr int tokens = 3, inputs = 6;
constexpr size_t bytes = 256;

void decode(bool wait) {
  const CUstream s = cases::stream();
  const CUdeviceptr to = cases::device(bytes);
  const void* from = cases::pinned(bytes);
  for (int token = 0; token < tokens; ++token) {
    cases::busy(s, 5);
    for (int i = 0; i < inputs; ++i) {
      MUST(cuMemcpyHtoDAsync(to, from, bytes, s));
      if (wait) MUST(cuStreamSynchronize(s));  // here
    }
    cases::small_kernel(s);
  }
}

void with_waits() {
  decode(true);
}
void without_waits() {
  decode(false);
}

HOSTWAIT_CASE("LL-07", with_waits, without_waits);

}  // namespace
