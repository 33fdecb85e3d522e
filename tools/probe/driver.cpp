// SPDX-License-Identifier: Apache-2.0
// Copyright The hostwait authors
#include "driver.hpp"

#include <dlfcn.h>

namespace hostwait::probe {

namespace {

template <class Function>
void find(void* library, const char* symbol, Function& out) {
  out = reinterpret_cast<Function>(::dlsym(library, symbol));
}

}  // namespace

driver* driver::load(std::string& why) {
  void* library = ::dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) {
    const char* text = ::dlerror();
    why = text != nullptr ? text : "libcuda.so.1 cannot be loaded";
    return nullptr;
  }
  static driver found;
  for (unsigned i = 0; i < row_count; ++i) found.rows_[i] = ::dlsym(library, rows[i].symbol);
#define HW_PROBE_OTHER(symbol) find(library, #symbol, found.symbol);
#include "others.def"
#undef HW_PROBE_OTHER
  if (found.cuInit == nullptr || found.cuDevicePrimaryCtxRetain == nullptr ||
      found.cuStreamCreate == nullptr) {
    why = "libcuda.so.1 lacks functions that every driver has";
    return nullptr;
  }
  found.simulated_ = ::dlsym(library, "hostwait_sim_present") != nullptr;
  Dl_info info{};
  if (::dladdr(reinterpret_cast<void*>(found.cuInit), &info) != 0 && info.dli_fname != nullptr)
    found.path_ = info.dli_fname;
  return &found;
}

std::string driver::name_of(int result) const {
  const char* name = nullptr;
  if (cuGetErrorName == nullptr ||
      cuGetErrorName(static_cast<CUresult>(result), &name) != CUDA_SUCCESS || name == nullptr)
    return "error " + std::to_string(result);
  return name;
}

}  // namespace hostwait::probe
