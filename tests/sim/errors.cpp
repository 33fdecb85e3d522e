// SPDX-License-Identifier: Apache-2.0
// Copyright The hostwait authors
// Names and texts of all results of CUDA 13.0.
#include <iterator>

#include "state.hpp"

namespace hostwait::sim {
namespace {

struct text {
  CUresult code;
  const char* name;
};
constexpr text texts[] = {
#define SIM_RESULT(code) {code, #code},
    SIM_RESULT(CUDA_SUCCESS) SIM_RESULT(CUDA_ERROR_INVALID_VALUE) SIM_RESULT(CUDA_ERROR_OUT_OF_MEMORY) SIM_RESULT(
        CUDA_ERROR_NOT_INITIALIZED) SIM_RESULT(CUDA_ERROR_DEINITIALIZED) SIM_RESULT(CUDA_ERROR_PROFILER_DISABLED)
        SIM_RESULT(CUDA_ERROR_PROFILER_NOT_INITIALIZED) SIM_RESULT(CUDA_ERROR_PROFILER_ALREADY_STARTED) SIM_RESULT(
            CUDA_ERROR_PROFILER_ALREADY_STOPPED) SIM_RESULT(CUDA_ERROR_STUB_LIBRARY) SIM_RESULT(CUDA_ERROR_CALL_REQUIRES_NEWER_DRIVER)
            SIM_RESULT(CUDA_ERROR_DEVICE_UNAVAILABLE) SIM_RESULT(CUDA_ERROR_NO_DEVICE) SIM_RESULT(
                CUDA_ERROR_INVALID_DEVICE) SIM_RESULT(CUDA_ERROR_DEVICE_NOT_LICENSED) SIM_RESULT(CUDA_ERROR_INVALID_IMAGE)
                SIM_RESULT(CUDA_ERROR_INVALID_CONTEXT) SIM_RESULT(CUDA_ERROR_CONTEXT_ALREADY_CURRENT) SIM_RESULT(
                    CUDA_ERROR_MAP_FAILED) SIM_RESULT(CUDA_ERROR_UNMAP_FAILED) SIM_RESULT(CUDA_ERROR_ARRAY_IS_MAPPED)
                    SIM_RESULT(CUDA_ERROR_ALREADY_MAPPED) SIM_RESULT(CUDA_ERROR_NO_BINARY_FOR_GPU) SIM_RESULT(
                        CUDA_ERROR_ALREADY_ACQUIRED) SIM_RESULT(CUDA_ERROR_NOT_MAPPED)
                        SIM_RESULT(CUDA_ERROR_NOT_MAPPED_AS_ARRAY) SIM_RESULT(CUDA_ERROR_NOT_MAPPED_AS_POINTER) SIM_RESULT(
                            CUDA_ERROR_ECC_UNCORRECTABLE) SIM_RESULT(CUDA_ERROR_UNSUPPORTED_LIMIT) SIM_RESULT(CUDA_ERROR_CONTEXT_ALREADY_IN_USE)
                            SIM_RESULT(CUDA_ERROR_PEER_ACCESS_UNSUPPORTED) SIM_RESULT(CUDA_ERROR_INVALID_PTX) SIM_RESULT(
                                CUDA_ERROR_INVALID_GRAPHICS_CONTEXT) SIM_RESULT(CUDA_ERROR_NVLINK_UNCORRECTABLE)
                                SIM_RESULT(CUDA_ERROR_JIT_COMPILER_NOT_FOUND) SIM_RESULT(
                                    CUDA_ERROR_UNSUPPORTED_PTX_VERSION) SIM_RESULT(CUDA_ERROR_JIT_COMPILATION_DISABLED)
                                    SIM_RESULT(CUDA_ERROR_UNSUPPORTED_EXEC_AFFINITY) SIM_RESULT(
                                        CUDA_ERROR_UNSUPPORTED_DEVSIDE_SYNC) SIM_RESULT(CUDA_ERROR_CONTAINED)
                                        SIM_RESULT(CUDA_ERROR_INVALID_SOURCE) SIM_RESULT(
                                            CUDA_ERROR_FILE_NOT_FOUND) SIM_RESULT(CUDA_ERROR_SHARED_OBJECT_SYMBOL_NOT_FOUND)
                                            SIM_RESULT(CUDA_ERROR_SHARED_OBJECT_INIT_FAILED) SIM_RESULT(
                                                CUDA_ERROR_OPERATING_SYSTEM) SIM_RESULT(CUDA_ERROR_INVALID_HANDLE)
                                                SIM_RESULT(CUDA_ERROR_ILLEGAL_STATE) SIM_RESULT(
                                                    CUDA_ERROR_LOSSY_QUERY) SIM_RESULT(CUDA_ERROR_NOT_FOUND)
                                                    SIM_RESULT(CUDA_ERROR_NOT_READY) SIM_RESULT(
                                                        CUDA_ERROR_ILLEGAL_ADDRESS) SIM_RESULT(CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES)
                                                        SIM_RESULT(CUDA_ERROR_LAUNCH_TIMEOUT) SIM_RESULT(
                                                            CUDA_ERROR_LAUNCH_INCOMPATIBLE_TEXTURING)
                                                            SIM_RESULT(CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED) SIM_RESULT(
                                                                CUDA_ERROR_PEER_ACCESS_NOT_ENABLED)
                                                                SIM_RESULT(CUDA_ERROR_PRIMARY_CONTEXT_ACTIVE) SIM_RESULT(
                                                                    CUDA_ERROR_CONTEXT_IS_DESTROYED)
                                                                    SIM_RESULT(
                                                                        CUDA_ERROR_ASSERT) SIM_RESULT(CUDA_ERROR_TOO_MANY_PEERS) SIM_RESULT(CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED) SIM_RESULT(CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED) SIM_RESULT(CUDA_ERROR_HARDWARE_STACK_ERROR) SIM_RESULT(CUDA_ERROR_ILLEGAL_INSTRUCTION) SIM_RESULT(CUDA_ERROR_MISALIGNED_ADDRESS) SIM_RESULT(CUDA_ERROR_INVALID_ADDRESS_SPACE) SIM_RESULT(CUDA_ERROR_INVALID_PC) SIM_RESULT(CUDA_ERROR_LAUNCH_FAILED) SIM_RESULT(CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE) SIM_RESULT(CUDA_ERROR_TENSOR_MEMORY_LEAK) SIM_RESULT(CUDA_ERROR_NOT_PERMITTED) SIM_RESULT(CUDA_ERROR_NOT_SUPPORTED) SIM_RESULT(CUDA_ERROR_SYSTEM_NOT_READY) SIM_RESULT(CUDA_ERROR_SYSTEM_DRIVER_MISMATCH) SIM_RESULT(CUDA_ERROR_COMPAT_NOT_SUPPORTED_ON_DEVICE) SIM_RESULT(CUDA_ERROR_MPS_CONNECTION_FAILED) SIM_RESULT(CUDA_ERROR_MPS_RPC_FAILURE) SIM_RESULT(CUDA_ERROR_MPS_SERVER_NOT_READY) SIM_RESULT(CUDA_ERROR_MPS_MAX_CLIENTS_REACHED) SIM_RESULT(CUDA_ERROR_MPS_MAX_CONNECTIONS_REACHED) SIM_RESULT(CUDA_ERROR_MPS_CLIENT_TERMINATED) SIM_RESULT(CUDA_ERROR_CDP_NOT_SUPPORTED) SIM_RESULT(CUDA_ERROR_CDP_VERSION_MISMATCH) SIM_RESULT(CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED) SIM_RESULT(CUDA_ERROR_STREAM_CAPTURE_INVALIDATED) SIM_RESULT(CUDA_ERROR_STREAM_CAPTURE_MERGE) SIM_RESULT(CUDA_ERROR_STREAM_CAPTURE_UNMATCHED) SIM_RESULT(CUDA_ERROR_STREAM_CAPTURE_UNJOINED) SIM_RESULT(CUDA_ERROR_STREAM_CAPTURE_ISOLATION) SIM_RESULT(CUDA_ERROR_STREAM_CAPTURE_IMPLICIT) SIM_RESULT(CUDA_ERROR_CAPTURED_EVENT) SIM_RESULT(CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD) SIM_RESULT(CUDA_ERROR_TIMEOUT) SIM_RESULT(CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE)
                                                                        SIM_RESULT(CUDA_ERROR_EXTERNAL_DEVICE) SIM_RESULT(
                                                                            CUDA_ERROR_INVALID_CLUSTER_SIZE) SIM_RESULT(CUDA_ERROR_FUNCTION_NOT_LOADED)
                                                                            SIM_RESULT(
                                                                                CUDA_ERROR_INVALID_RESOURCE_TYPE)
                                                                                SIM_RESULT(
                                                                                    CUDA_ERROR_INVALID_RESOURCE_CONFIGURATION)
                                                                                    SIM_RESULT(
                                                                                        CUDA_ERROR_KEY_ROTATION)
                                                                                        SIM_RESULT(
                                                                                            CUDA_ERROR_UNKNOWN)
#undef SIM_RESULT
};

const char* find(CUresult code) {
  for (const text& t : texts)
    if (t.code == code) return t.name;
  return nullptr;
}

// The text is the name in lower case without its prefix: out_of_memory reads "out of memory".
const char* readable(CUresult code) {
  static std::once_flag once;
  static char spelled[std::size(texts)][64];
  std::call_once(once, [] {
    for (size_t i = 0; i < std::size(texts); ++i) {
      const char* from =
          texts[i].name + (texts[i].code ? sizeof "CUDA_ERROR_" : sizeof "CUDA_") - 1;
      for (size_t n = 0; from[n] && n + 1 < sizeof spelled[i]; ++n)
        spelled[i][n] = from[n] == '_' ? ' ' : static_cast<char>(from[n] | 0x20);
    }
  });
  for (size_t i = 0; i < std::size(texts); ++i)
    if (texts[i].code == code) return spelled[i];
  return nullptr;
}

CUresult put(const char** out, const char* value) {
  if (!out) return CUDA_ERROR_INVALID_VALUE;
  *out = value;
  return value ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

}  // namespace
}  // namespace hostwait::sim

using namespace hostwait::sim;

SIM_API(cuGetErrorName, (CUresult code, const char** out), put(out, find(code)))
SIM_API(cuGetErrorString, (CUresult code, const char** out), put(out, readable(code)))
