// SPDX-License-Identifier: Apache-2.0
// Copyright The hostwait authors
// Frees memory behind a stream that is held for ever: what hostwait top shows of a hang. The
// simulated driver only.
#include <cuda.h>
#include <dlfcn.h>

#include <cstdio>
#include <cstdlib>

#include "sim/hostwait_sim.h"

namespace {

void* driver() {
  static void* const handle = dlopen("libcuda.so.1", RTLD_NOW);
  if (handle == nullptr) std::exit(3);
  return handle;
}

#define TEXT_(x) #x
#define TEXT(x) TEXT_(x)
#define CU(name, ...)                                                                     \
  do {                                                                                    \
    if (reinterpret_cast<decltype(&name)>(dlsym(driver(), TEXT(name)))(__VA_ARGS__) != 0) \
      std::exit(4);                                                                       \
  } while (false)

// noinline: the test looks for its name in the stack.
__attribute__((noinline)) void release_workspace(CUdeviceptr workspace) {
  CU(cuMemFree, workspace);
  std::puts("freed");
}

}  // namespace

int main() {
  CUdevice device;
  CUcontext context;
  CUstream stream;
  CUdeviceptr workspace;
  CU(cuInit, 0);
  CU(cuDeviceGet, &device, 0);
  CU(cuDevicePrimaryCtxRetain, &context, device);
  CU(cuCtxSetCurrent, context);
  CU(cuStreamCreate, &stream, CU_STREAM_NON_BLOCKING);
  CU(cuMemAlloc, &workspace, 4096);
  CU(hostwait_sim_hold, stream);
  std::puts("ready");
  std::fflush(stdout);
  release_workspace(workspace);
  return 0;
}
