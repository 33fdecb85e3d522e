// SPDX-License-Identifier: Apache-2.0
// Copyright The hostwait authors
// RA-03, unexpected_sync, cuCollections: https://github.com/NVIDIA/cuCollections/pull/727
// Four threads with a stream each read four bytes into a variable on the stack: ordinary memory,
// so each asynchronous copy waits for its stream. One site, four threads. Into pinned memory it
// does not.
//
// expect case: {"kind": "async_copy", "call": "cuMemcpyDtoHAsync", "verdict": "stream", "calls":
//               8, "waited": 8, "at": "here"}
// expect control: nothing
#include <vector>

#include "cases.hpp"

namespace {

constexpr int threads = 4, rounds = 2;

void read(CUstream s, CUdeviceptr count, void* to) {
  for (int i = 0; i < rounds; ++i) {
    cases::busy(s, 10);
    MUST(cuMemcpyDtoHAsync(to, count, 4, s));  // here
  }
}

void each_thread(bool pinned) {
  std::vector<std::thread> all;
  for (int i = 0; i < threads; ++i) {
    const CUstream s = cases::stream();
    const CUdeviceptr count = cases::device(4);
    void* scalar = pinned ? cases::pinned(4) : nullptr;
    all.push_back(cases::worker("reader", [=] {
      int local = 0;
      read(s, count, scalar != nullptr ? scalar : &local);
    }));
  }
  for (std::thread& one : all) one.join();
}

void to_the_stack() {
  each_thread(false);
}
void to_pinned() {
  each_thread(true);
}

HOSTWAIT_CASE("RA-03", to_the_stack, to_pinned);

}  // namespace
