// SPDX-License-Identifier: Apache-2.0
// Copyright The hostwait authors
// The driver by dlopen, typed by cuda.h, for the GPU probes and the benchmark: they build without a
// driver and take whichever libcuda.so.1 the process finds. Figures go to stdout, one JSON object a
// line.
#pragma once

#include <cuda.h>
#include <dlfcn.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

namespace gpu {

inline void* symbol(const char* name) {
  static void* library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_GLOBAL);
  if (library == nullptr) {
    printf("skipped: no GPU (libcuda.so.1 is not here)\n");
    exit(77);
  }
  void* found = dlsym(library, name);
  if (found == nullptr) {
    fprintf(stderr, "the driver has no %s\n", name);
    exit(1);
  }
  return found;
}

#define GPU_NAME_(name) #name
#define GPU_NAME(name) GPU_NAME_(name)  // after cuda.h's renaming: "cuMemAlloc_v2"
#define CU(name)                                                                          \
  ([]() -> decltype(&name) {                                                              \
    static const auto f = reinterpret_cast<decltype(&name)>(gpu::symbol(GPU_NAME(name))); \
    return f;                                                                             \
  }())

inline const char* result_name(CUresult result) {
  const char* name = nullptr;
  CU(cuGetErrorName)(result, &name);
  return name != nullptr ? name : "?";
}

inline void must(CUresult result, const char* what) {
  if (result == CUDA_SUCCESS) return;
  fprintf(stderr, "%s: %s\n", what, result_name(result));
  exit(1);
}
#define MUST(call) gpu::must((call), #call)

// The primary context of device 0, current. Leaves with 77 where there is no device.
inline CUcontext start() {
  if (CU(cuInit)(0) != CUDA_SUCCESS) {
    printf("skipped: no GPU (cuInit failed)\n");
    exit(77);
  }
  CUcontext context = nullptr;
  MUST(CU(cuDevicePrimaryCtxRetain)(&context, 0));
  MUST(CU(cuCtxSetCurrent)(context));
  return context;
}

inline CUstream new_stream(unsigned flags = CU_STREAM_NON_BLOCKING) {
  CUstream stream = nullptr;
  MUST(CU(cuStreamCreate)(&stream, flags));
  return stream;
}

inline CUevent new_event() {
  CUevent event = nullptr;
  MUST(CU(cuEventCreate)(&event, CU_EVENT_DISABLE_TIMING));
  return event;
}

inline CUdeviceptr new_memory(size_t bytes) {
  CUdeviceptr at = 0;
  MUST(CU(cuMemAlloc)(&at, bytes));
  return at;
}

inline void synchronize_all() {
  using function = CUresult (*)();
  static const auto f = reinterpret_cast<function>(symbol("cuCtxSynchronize"));
  MUST(f());
}

using clock = std::chrono::steady_clock;
inline double microseconds_since(clock::time_point begin) {
  return std::chrono::duration<double, std::micro>(clock::now() - begin).count();
}

// One line of the measurement format.
inline void report(const std::string& name, std::vector<double> values, const char* unit) {
  std::sort(values.begin(), values.end());
  printf("{\"name\":\"%s\",\"value\":%.4g,\"unit\":\"%s\",\"n\":%zu,\"min\":%.4g,\"max\":%.4g}\n",
         name.c_str(), values[values.size() / 2], unit, values.size(), values.front(),
         values.back());
  fflush(stdout);
}

// A finding in words, or a yes or no.
inline void answer(const std::string& name, const std::string& text) {
  printf("{\"name\":\"%s\",\"value\":\"%s\",\"unit\":\"answer\",\"n\":1}\n", name.c_str(),
         text.c_str());
  fflush(stdout);
}

}  // namespace gpu
