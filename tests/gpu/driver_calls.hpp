// SPDX-License-Identifier: Apache-2.0
// Copyright The hostwait authors
// Driver calls of the programs here: found by dlsym, checked where NEED makes them. Status 77
// without a driver, 3 for a call that fails.
#pragma once

#include <cuda.h>
#include <dlfcn.h>

#include <cstdio>
#include <cstdlib>

inline void* driver_symbol(const char* name) {
  static void* const driver = dlopen("libcuda.so.1", RTLD_NOW);
  void* const found = driver != nullptr ? dlsym(driver, name) : nullptr;
  if (found == nullptr) {
    std::printf("no driver function %s\n", name);
    std::exit(77);
  }
  return found;
}
#define CALL(symbol) reinterpret_cast<decltype(&symbol)>(driver_symbol(#symbol))

inline void need(CUresult result, const char* what) {
  if (result == CUDA_SUCCESS) return;
  std::printf("%s: %d\n", what, static_cast<int>(result));
  std::exit(3);
}
#define NEED(symbol, ...) need(CALL(symbol)(__VA_ARGS__), #symbol)
