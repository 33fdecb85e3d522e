// SPDX-License-Identifier: Apache-2.0
// Copyright The hostwait authors
// From driver functions to the runtime functions behind them, as measured with CUDA 13.0.
#include <cstring>

#include "finding.hpp"

namespace hostwait {

namespace {

struct pair {
  const char* driver;
  const char* runtime;
};

constexpr pair names[] = {
    {"cuArray3DCreate", "cudaMalloc3DArray"},
    {"cuArrayDestroy", "cudaFreeArray"},
    {"cuCtxSetCacheConfig", "cudaDeviceSetCacheConfig"},
    {"cuCtxSetLimit", "cudaDeviceSetLimit"},
    {"cuCtxSynchronize", "cudaDeviceSynchronize"},
    {"cuEventDestroy", "cudaEventDestroy"},
    {"cuEventElapsedTime", "cudaEventElapsedTime"},
    {"cuEventQuery", "cudaEventQuery"},
    {"cuEventRecord", "cudaEventRecord"},
    {"cuEventSynchronize", "cudaEventSynchronize"},
    {"cuGraphExecDestroy", "cudaGraphExecDestroy"},
    {"cuGraphInstantiateWithFlags", "cudaGraphInstantiate"},
    {"cuGraphLaunch", "cudaGraphLaunch"},
    {"cuLaunchHostFunc", "cudaLaunchHostFunc"},
    {"cuMemAdvise", "cudaMemAdvise"},
    {"cuMemAlloc", "cudaMalloc"},
    {"cuMemAllocAsync", "cudaMallocAsync"},
    {"cuMemAllocManaged", "cudaMallocManaged"},
    {"cuMemFree", "cudaFree"},
    {"cuMemFreeAsync", "cudaFreeAsync"},
    {"cuMemFreeHost", "cudaFreeHost"},
    {"cuMemGetInfo", "cudaMemGetInfo"},
    {"cuMemHostAlloc", "cudaMallocHost"},
    {"cuMemHostRegister", "cudaHostRegister"},
    {"cuMemHostUnregister", "cudaHostUnregister"},
    {"cuMemPoolTrimTo", "cudaMemPoolTrimTo"},
    {"cuMemPrefetchAsync", "cudaMemPrefetchAsync"},
    {"cuMemcpy", "cudaMemcpy"},
    {"cuMemcpy2DAsync", "cudaMemcpy2DAsync"},
    {"cuMemcpy2DUnaligned", "cudaMemcpy2D"},
    {"cuMemcpyDtoD", "cudaMemcpy"},
    {"cuMemcpyDtoDAsync", "cudaMemcpyAsync"},
    {"cuMemcpyDtoH", "cudaMemcpy"},
    {"cuMemcpyDtoHAsync", "cudaMemcpyAsync"},
    {"cuMemcpyHtoD", "cudaMemcpy"},
    {"cuMemcpyHtoDAsync", "cudaMemcpyAsync"},
    {"cuMemcpyPeer", "cudaMemcpyPeer"},
    {"cuMemsetD8", "cudaMemset"},
    {"cuMemsetD8Async", "cudaMemsetAsync"},
    {"cuPointerGetAttributes", "cudaPointerGetAttributes"},
    {"cuStreamCreate", "cudaStreamCreate"},
    {"cuStreamDestroy", "cudaStreamDestroy"},
    {"cuStreamQuery", "cudaStreamQuery"},
    {"cuStreamSynchronize", "cudaStreamSynchronize"},
    {"cuStreamWaitEvent", "cudaStreamWaitEvent"},
};

}  // namespace

std::string driver_base_name(const std::string& symbol) {
  std::string name = symbol;
  for (;;) {
    const std::size_t bar = name.rfind('_');
    if (bar == std::string::npos) return name;
    const std::string suffix = name.substr(bar + 1);
    const bool version = suffix.size() >= 2 && suffix[0] == 'v' &&
                         suffix.find_first_not_of("0123456789", 1) == std::string::npos;
    if (suffix != "ptsz" && suffix != "ptds" && !version) return name;
    name.resize(bar);
  }
}

std::string runtime_name_of(const std::string& driver_base, std::uint32_t direction) {
  // The runtime turns plain copies between host buffers into two-dimensional ones.
  if (direction == HOSTWAIT_DIRECTION_H2H) {
    if (driver_base == "cuMemcpy2DUnaligned") return "cudaMemcpy";
    if (driver_base == "cuMemcpy2DAsync") return "cudaMemcpyAsync";
  }
  for (const pair& each : names) {
    if (driver_base == each.driver) return each.runtime;
  }
  return "";
}

}  // namespace hostwait
