// SPDX-License-Identifier: Apache-2.0
// Copyright The hostwait authors
// DR-05, unexpected_sync, torchcomms: https://github.com/meta-pytorch/torchcomms/pull/2334
// A pinned copy on a private non-blocking stream cannot wait for anything, and yet stays long:
// another thread is loading a module, which waits for every stream and holds the driver's lock
// meanwhile (measured: 26 ms beside cuModuleLoadData). Victim: verdict none, held. Holder: the
// module load, a finding by its verdict; its own cost is not known, so it counts as latent. On
// the simulated driver the holder alone is judged: times are not.
//
// expect case: {"kind": "module", "call": "cuModuleLoadData", "verdict": "context", "calls": 1,
//               "above_ms": 5, "at": "holder"}
// expect case: {"kind": "async_copy", "call": "cuMemcpyHtoDAsync", "verdict": "none", "calls": 1,
//               "held": 1, "violations": 0, "above_ms": 5, "at": "victim",
//               "held_by": {"call": "cuModuleLoadData", "thread": "loader"}}
// expect control: nothing
#include <atomic>
#include <chrono>

#include "cases.hpp"

namespace {

constexpr size_t bytes = 4096;
constexpr const char* ptx = R"(.version 6.4
.target sm_75
.address_size 64
.visible .entry late() { ret; }
)";

void copy_beside(bool load) {
  const CUstream working = cases::stream(), mine = cases::stream();
  const CUdeviceptr to = cases::device(bytes);
  const void* from = cases::pinned(bytes);
  std::atomic<bool> entered{false};
  CUmodule module = nullptr;
  cases::busy(working, 40);
  std::thread loader = cases::worker("loader", [&] {
    entered = true;
    if (load) MUST(cuModuleLoadData(&module, ptx));  // here holder
  });
  while (!entered) std::this_thread::yield();
  std::this_thread::sleep_for(std::chrono::milliseconds(8));  // until it holds the lock
  MUST(cuMemcpyHtoDAsync(to, from, bytes, mine));             // here victim
  loader.join();
  cases::idle();
  const cases::setup labelled;
  if (load) MUST(cuModuleUnload(module));
}

void beside_a_load() {
  copy_beside(true);
}
void alone() {
  copy_beside(false);
}

HOSTWAIT_CASE("DR-05", beside_a_load, alone);

}  // namespace
