// SPDX-License-Identifier: Apache-2.0
// Copyright The hostwait authors
// The driver's functions as an unmodified program finds them: dlopen, then dlsym by exact name.
#pragma once

#include <cuda.h>
#include <dlfcn.h>

#include <stdexcept>
#include <string>

namespace hostwait_test {

inline void* driver_library() {
  static void* handle = [] {
    void* h = dlopen("libcuda.so.1", RTLD_NOW);
    if (h == nullptr) throw std::runtime_error(dlerror());
    return h;
  }();
  return handle;
}

template <class Function>
Function* driver(const char* symbol) {
  void* found = dlsym(driver_library(), symbol);
  if (found == nullptr) throw std::runtime_error(std::string("no ") + symbol);
  return reinterpret_cast<Function*>(found);
}

// DRIVER(cuMemcpyHtoD_v2)(args…): the function under exactly this symbol name.
#define DRIVER(symbol) (::hostwait_test::driver<decltype(symbol)>(#symbol))

// The first device's primary context, current on this thread from here on.
inline CUcontext first_context() {
  CUcontext context = nullptr;
  if (DRIVER(cuInit)(0) != CUDA_SUCCESS ||
      DRIVER(cuDevicePrimaryCtxRetain)(&context, 0) != CUDA_SUCCESS ||
      DRIVER(cuCtxSetCurrent)(context) != CUDA_SUCCESS)
    throw std::runtime_error("no context");
  return context;
}

}  // namespace hostwait_test
