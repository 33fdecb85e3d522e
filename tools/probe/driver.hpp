// SPDX-License-Identifier: Apache-2.0
// Copyright The hostwait authors
// The driver under test: every row of the table and the few other functions that experiments
// need, by exact symbol from libcuda.so.1. Nothing is linked; what the driver lacks is null.
#pragma once

#include "signatures.hpp"

#include <array>
#include <string>

#include "row.hpp"

namespace hostwait::probe {

// Functions outside the table, by exact symbol.
#define HW_PROBE_OTHERS                                                                            \
  X(cuInit)                                                                                        \
  X(cuDriverGetVersion)                                                                            \
  X(cuGetErrorName)                                                                                \
  X(cuDeviceGet)                                                                                   \
  X(cuDeviceGetCount)                                                                              \
  X(cuDeviceGetName)                                                                               \
  X(cuDeviceGetAttribute)                                                                          \
  X(cuDeviceGetDefaultMemPool) X(cuDeviceCanAccessPeer) X(cuDevicePrimaryCtxRetain)                \
      X(cuCtxSetCurrent) X(cuCtxGetCurrent) X(cuCtxPopCurrent_v2) X(cuCtxPushCurrent_v2) X(        \
          cuCtxCreate_v4) X(cuCtxGetLimit) X(cuCtxSetCacheConfig) X(cuCtxFromGreenCtx)             \
          X(cuDeviceGetDevResource) X(cuDevSmResourceSplitByCount) X(cuDevResourceGenerateDesc) X( \
              cuGreenCtxCreate) X(cuGreenCtxStreamCreate) X(cuStreamCreate) X(cuStreamDestroy_v2)  \
              X(cuStreamIsCapturing) X(cuEventDestroy_v2) X(cuPointerGetAttributes)                \
                  X(cuMemHostGetDevicePointer_v2) X(cuMemGetInfo_v2) X(cuMemAdvise_v2)             \
                      X(cuMemRangeGetAttribute) X(cuMemCreate) X(cuMemAddressReserve)              \
                          X(cuMemGetAllocationGranularity) X(cuMemPoolCreate) X(cuMemPoolDestroy)  \
                              X(cuMemPoolSetAttribute) X(cuMemPoolGetAttribute)                    \
                                  X(cuIpcGetMemHandle) X(cuGraphCreate) X(cuGraphDestroy)          \
                                      X(cuGraphAddEmptyNode) X(cuGraphAddKernelNode_v2)            \
                                          X(cuGraphAddMemcpyNode) X(cuGraphAddHostNode)            \
                                              X(cuGraphAddMemAllocNode) X(cuGraphAddMemFreeNode)   \
                                                  X(cuGraphExecDestroy) X(cuGraphExecUpdate_v2)    \
                                                      X(cuGraphExecKernelNodeSetParams_v2)         \
                                                          X(cuLinkCreate_v2) X(cuLinkAddData_v2)   \
                                                              X(cuLinkComplete) X(cuLinkDestroy)   \
                                                                  X(cuFuncSetCacheConfig) X(       \
                                                                      cuDevicePrimaryCtxGetState)

class driver {
 public:
  // Null and a reason where there is no driver.
  static driver* load(std::string& why);

  template <row_id Row>
  typename signature<Row>::type* get() const {
    return reinterpret_cast<typename signature<Row>::type*>(rows_[Row]);
  }
#define X(symbol) decltype(&::symbol) symbol = nullptr;
  HW_PROBE_OTHERS
#undef X

  bool simulated() const {
    return simulated_;
  }
  const std::string& path() const {
    return path_;
  }
  std::string name_of(int result) const;  // CUDA_ERROR_…

 private:
  std::array<void*, row_count> rows_{};
  bool simulated_ = false;
  std::string path_;
};

}  // namespace hostwait::probe
