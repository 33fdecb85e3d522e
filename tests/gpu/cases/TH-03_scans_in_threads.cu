// SPDX-License-Identifier: Apache-2.0
// Copyright The hostwait authors
// TH-03, unexpected_sync, CCCL: https://github.com/NVIDIA/cccl/issues/768
// Threads with streams of their own scan at once; the free of tiny scratch memory stops the whole
// device for each of them. One finding with a call per thread, however short: only those that
// come while others' work is pending are waits. The waits of the scans for their own streams are
// findings of their own. Stream-ordered scratch memory without waits: silent.
//
// expect case: {"kind": "free", "call": "cuMemFree", "verdict": "context", "calls": 4, "frame":
//               "inclusive_scan", "innermost": false, "at": "here"}
// expect case: {"kind": "stream_sync", "call": "cuStreamSynchronize", "verdict": "stream",
//               "waited": [1, 8], "frame": "inclusive_scan", "innermost": false, "sites": [1,
//               null], "at": "here"}
// expect control: nothing
#include <cuda_runtime.h>
#include <thrust/execution_policy.h>
#include <thrust/scan.h>

#include <vector>

#include "cases.hpp"
#include "stream_memory.hpp"

namespace {

constexpr int count = 4096, threads = 4;

template <typename Scan>
void in_threads(Scan scan) {
  std::vector<std::thread> all;
  for (int i = 0; i < threads; ++i) {
    const CUstream s = cases::stream();
    int* data = reinterpret_cast<int*>(cases::device(count * sizeof(int)));
    cases::busy(s, 20);
    all.push_back(cases::worker("scanner", [=] { scan(s, data); }));
  }
  for (std::thread& one : all) one.join();
}

void default_scratch() {
  in_threads([](CUstream s, int* data) {
    const auto policy = thrust::cuda::par.on(s);
    thrust::inclusive_scan(policy, data, data + count, data);  // here
  });
}

void stream_scratch() {
  in_threads([](CUstream s, int* data) {
    stream_memory memory{s};
    const auto policy = thrust::cuda::par_nosync(memory).on(s);
    thrust::inclusive_scan(policy, data, data + count, data);
  });
}

HOSTWAIT_CASE("TH-03", default_scratch, stream_scratch);

}  // namespace
