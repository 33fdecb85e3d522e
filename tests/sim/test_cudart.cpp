// SPDX-License-Identifier: Apache-2.0
// Copyright The hostwait authors
// How far NVIDIA's runtime gets on the simulated driver: it looks everything up, initialises the
// driver, and stops at the first private table it cannot do without. README.md tells the rest.
#include <cuda_runtime_api.h>
#include <dlfcn.h>

#include <string>

#include "hostwait_sim.h"
#include "support/catch.hpp"

namespace {

// The runtime loads the driver by itself; only then can it be asked.
template <class Function>
Function control(const char* name) {
  void* handle = dlopen("libcuda.so.1", RTLD_NOW | RTLD_NOLOAD);
  REQUIRE(handle);
  void* found = dlsym(handle, name);
  REQUIRE(found);
  return reinterpret_cast<Function>(found);
}

uint64_t calls(const char* symbol) {
  return control<decltype(&hostwait_sim_calls)>("hostwait_sim_calls")(symbol);
}

}  // namespace

TEST_CASE("the runtime looks up, initialises, and stops at a private table") {
  int version = 0;
  CHECK(cudaDriverGetVersion(&version) == cudaSuccess);
  CHECK(version == 13000);
  control<decltype(&hostwait_sim_present)>("hostwait_sim_present");
  CHECK(cudaRuntimeGetVersion(&version) == cudaSuccess);
  CHECK(version / 1000 == 13);

  int count = -1;
  CHECK(cudaGetDeviceCount(&count) == cudaErrorSymbolNotFound);
  CHECK(count == -1);
  CHECK(calls("cuInit") == 1);
  CHECK(calls("cuGetExportTable") == 2);
  CHECK(calls("cuGetProcAddress_v2") > 300);
  CHECK(calls("cuGetProcAddress") == 0);
  CHECK(calls("cuDeviceGetCount") == 0);
}

TEST_CASE("every later call answers the same, and reaches no driver call") {
  void* memory = nullptr;
  CHECK(cudaSetDevice(0) == cudaErrorSymbolNotFound);
  CHECK(cudaMalloc(&memory, 16) == cudaErrorSymbolNotFound);
  CHECK(cudaDeviceSynchronize() == cudaErrorSymbolNotFound);
  CHECK(cudaStreamSynchronize(nullptr) == cudaErrorSymbolNotFound);
  CHECK(cudaFree(nullptr) == cudaErrorSymbolNotFound);
  CHECK(calls("cuMemAlloc_v2") == 0);
  CHECK(calls("cuStreamSynchronize") == 0);
  CHECK(calls("cuMemFree_v2") == 0);
  CHECK(calls("cuInit") == 1);
  CHECK(std::string(cudaGetErrorName(cudaErrorNotPermitted)) == "cudaErrorNotPermitted");
}
