// SPDX-License-Identifier: Apache-2.0
// Copyright The hostwait authors
// Frees memory behind a stream that is held for ever: what hostwait top shows of a hang. The
// simulated driver only.
#include <cstdio>
#include <cstdlib>

#include "sim/hostwait_sim.h"
#include "support/driver.hpp"

namespace {

void must(int result) {
  if (result != 0) std::exit(4);
}

// noinline: the test looks for its name in the stack.
__attribute__((noinline)) void release_workspace(CUdeviceptr workspace) {
  must(DRIVER(cuMemFree_v2)(workspace));
  std::puts("freed");
}

}  // namespace

int main() {
  CUstream stream;
  CUdeviceptr workspace;
  hostwait_test::first_context();
  must(DRIVER(cuStreamCreate)(&stream, CU_STREAM_NON_BLOCKING));
  must(DRIVER(cuMemAlloc_v2)(&workspace, 4096));
  must(DRIVER(hostwait_sim_hold)(stream));
  std::puts("ready");
  std::fflush(stdout);
  release_workspace(workspace);
  return 0;
}
