// SPDX-License-Identifier: Apache-2.0
// Copyright The hostwait authors
// Initialization and devices. The attributes are those of the GPU on which the blocking table
// was measured, as far as a client can be expected to look at them.
#include <pthread.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "state.hpp"

namespace hostwait::sim {

int device_count() {
  static const int count = [] {
    const char* text = getenv("HOSTWAIT_SIM_DEVICES");
    return text ? std::clamp(atoi(text), 1, max_devices) : 1;
  }();
  return count;
}

namespace {

// A child of an initialised process can use nothing, as with the real driver.
void after_fork() {
  if (!(slow_flags & slow_not_initialized)) slow_flags |= slow_forked;
}

CUresult initialize(unsigned flags) {
  if (flags) return CUDA_ERROR_INVALID_VALUE;
  static const int registered = pthread_atfork(nullptr, nullptr, after_fork);
  slow_flags &= ~slow_not_initialized;
  return registered ? CUDA_ERROR_OPERATING_SYSTEM : CUDA_SUCCESS;
}

template <class T, class V>
CUresult put(T* out, V value) {
  if (!out) return CUDA_ERROR_INVALID_VALUE;
  *out = static_cast<T>(value);
  return CUDA_SUCCESS;
}

CUresult get(CUdevice* out, int ordinal) {
  return device_valid(ordinal) ? put(out, ordinal) : CUDA_ERROR_INVALID_DEVICE;
}

CUresult name(char* out, int length, CUdevice number) {
  if (!device_valid(number)) return CUDA_ERROR_INVALID_DEVICE;
  if (!out || length <= 0) return CUDA_ERROR_INVALID_VALUE;
  snprintf(out, static_cast<size_t>(length), "hostwait simulated device %d", number);
  return CUDA_SUCCESS;
}

CUresult uuid(CUuuid* out, CUdevice number) {
  if (!device_valid(number)) return CUDA_ERROR_INVALID_DEVICE;
  if (!out) return CUDA_ERROR_INVALID_VALUE;
  memcpy(out->bytes, "hostwait-sim-dev", 16);
  out->bytes[15] = static_cast<char>('0' + number);
  return CUDA_SUCCESS;
}

CUresult pci_bus_id(char* out, int length, CUdevice number) {
  if (!device_valid(number)) return CUDA_ERROR_INVALID_DEVICE;
  if (!out || length < 13) return CUDA_ERROR_INVALID_VALUE;
  snprintf(out, static_cast<size_t>(length), "0000:%02x:00.0", number + 1);
  return CUDA_SUCCESS;
}

CUresult by_pci_bus_id(CUdevice* out, const char* id) {
  unsigned domain, bus;
  if (!out || !id || sscanf(id, "%x:%x", &domain, &bus) != 2) return CUDA_ERROR_INVALID_VALUE;
  return get(out, static_cast<int>(bus) - 1);
}

struct attribute_value {
  CUdevice_attribute which;
  int value;
};
constexpr attribute_value attribute_values[] = {
    {CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK, 1024},
    {CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_X, 1024},
    {CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Y, 1024},
    {CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Z, 64},
    {CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_X, 2147483647},
    {CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Y, 65535},
    {CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Z, 65535},
    {CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK, 49152},
    {CU_DEVICE_ATTRIBUTE_TOTAL_CONSTANT_MEMORY, 65536},
    {CU_DEVICE_ATTRIBUTE_WARP_SIZE, 32},
    {CU_DEVICE_ATTRIBUTE_MAX_PITCH, 2147483647},
    {CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_BLOCK, 65536},
    {CU_DEVICE_ATTRIBUTE_CLOCK_RATE, 1980000},
    {CU_DEVICE_ATTRIBUTE_TEXTURE_ALIGNMENT, 512},
    {CU_DEVICE_ATTRIBUTE_GPU_OVERLAP, 1},
    {CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, 132},
    {CU_DEVICE_ATTRIBUTE_CAN_MAP_HOST_MEMORY, 1},
    {CU_DEVICE_ATTRIBUTE_CONCURRENT_KERNELS, 1},
    {CU_DEVICE_ATTRIBUTE_ASYNC_ENGINE_COUNT, 3},
    {CU_DEVICE_ATTRIBUTE_UNIFIED_ADDRESSING, 1},
    {CU_DEVICE_ATTRIBUTE_MEMORY_CLOCK_RATE, 3201000},
    {CU_DEVICE_ATTRIBUTE_GLOBAL_MEMORY_BUS_WIDTH, 6144},
    {CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE, 62914560},
    {CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR, 2048},
    {CU_DEVICE_ATTRIBUTE_TEXTURE_PITCH_ALIGNMENT, 32},
    {CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, 9},
    {CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR, 0},
    {CU_DEVICE_ATTRIBUTE_STREAM_PRIORITIES_SUPPORTED, 1},
    {CU_DEVICE_ATTRIBUTE_GLOBAL_L1_CACHE_SUPPORTED, 1},
    {CU_DEVICE_ATTRIBUTE_LOCAL_L1_CACHE_SUPPORTED, 1},
    {CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_MULTIPROCESSOR, 233472},
    {CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_MULTIPROCESSOR, 65536},
    {CU_DEVICE_ATTRIBUTE_MANAGED_MEMORY, 1},
    {CU_DEVICE_ATTRIBUTE_HOST_NATIVE_ATOMIC_SUPPORTED, 0},
    {CU_DEVICE_ATTRIBUTE_PAGEABLE_MEMORY_ACCESS, 0},
    {CU_DEVICE_ATTRIBUTE_CONCURRENT_MANAGED_ACCESS, 1},
    {CU_DEVICE_ATTRIBUTE_COMPUTE_PREEMPTION_SUPPORTED, 1},
    {CU_DEVICE_ATTRIBUTE_CAN_USE_HOST_POINTER_FOR_REGISTERED_MEM, 1},
    {CU_DEVICE_ATTRIBUTE_COOPERATIVE_LAUNCH, 1},
    {CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN, 232448},
    {CU_DEVICE_ATTRIBUTE_HOST_REGISTER_SUPPORTED, 1},
    {CU_DEVICE_ATTRIBUTE_MAX_BLOCKS_PER_MULTIPROCESSOR, 32},
    {CU_DEVICE_ATTRIBUTE_MEMORY_POOLS_SUPPORTED, 1},
    {CU_DEVICE_ATTRIBUTE_CAN_USE_64_BIT_STREAM_MEM_OPS, 1},
    {CU_DEVICE_ATTRIBUTE_CAN_USE_STREAM_WAIT_VALUE_NOR, 1},
    {CU_DEVICE_ATTRIBUTE_RESERVED_SHARED_MEMORY_PER_BLOCK, 1024},
    {CU_DEVICE_ATTRIBUTE_UNIFIED_FUNCTION_POINTERS, 1},
};

int attribute_of(CUdevice_attribute which) {
  for (const attribute_value& known : attribute_values)
    if (known.which == which) return known.value;
  return 0;
}

CUresult attribute(int* out, CUdevice_attribute which, CUdevice number) {
  if (!device_valid(number)) return CUDA_ERROR_INVALID_DEVICE;
  if (which <= 0 || which >= CU_DEVICE_ATTRIBUTE_MAX) return CUDA_ERROR_INVALID_VALUE;
  if (which == CU_DEVICE_ATTRIBUTE_PCI_BUS_ID) return put(out, number + 1);
  return put(out, attribute_of(which));
}

CUresult compute_capability(int* major, int* minor, CUdevice number) {
  if (!device_valid(number)) return CUDA_ERROR_INVALID_DEVICE;
  if (!major || !minor) return CUDA_ERROR_INVALID_VALUE;
  *major = attribute_of(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR);
  *minor = attribute_of(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR);
  return CUDA_SUCCESS;
}

CUresult properties(CUdevprop* out, CUdevice number) {
  if (!device_valid(number)) return CUDA_ERROR_INVALID_DEVICE;
  if (!out) return CUDA_ERROR_INVALID_VALUE;
  *out = {};
  out->maxThreadsPerBlock = 1024;
  out->maxThreadsDim[0] = out->maxThreadsDim[1] = 1024;
  out->maxThreadsDim[2] = 64;
  out->maxGridSize[0] = 2147483647;
  out->maxGridSize[1] = out->maxGridSize[2] = 65535;
  out->sharedMemPerBlock = 49152;
  out->totalConstantMemory = 65536;
  out->SIMDWidth = 32;
  out->memPitch = 2147483647;
  out->regsPerBlock = 65536;
  out->clockRate = attribute_of(CU_DEVICE_ATTRIBUTE_CLOCK_RATE);
  out->textureAlign = 512;
  return CUDA_SUCCESS;
}

CUresult peer(int* out, CUdevice from, CUdevice to) {
  if (!device_valid(from) || !device_valid(to)) return CUDA_ERROR_INVALID_DEVICE;
  return put(out, from != to);
}

CUresult peer_attribute(int* out, CUdevice_P2PAttribute which, CUdevice from, CUdevice to) {
  if (!device_valid(from) || !device_valid(to) || from == to) return CUDA_ERROR_INVALID_DEVICE;
  return put(out, which != CU_DEVICE_P2P_ATTRIBUTE_PERFORMANCE_RANK);
}

}  // namespace
}  // namespace hostwait::sim

using namespace hostwait::sim;

SIM_API(cuInit, (unsigned flags), initialize(flags))
SIM_API(cuDriverGetVersion, (int* out), put(out, CUDA_VERSION))
SIM_API(cuDeviceGet, (CUdevice * out, int ordinal), get(out, ordinal))
SIM_API(cuDeviceGetCount, (int* out), put(out, device_count()))
SIM_API(cuDeviceGetName, (char* out, int length, CUdevice dev), name(out, length, dev))
SIM_API(cuDeviceGetUuid, (CUuuid * out, CUdevice dev), uuid(out, dev))
SIM_API(cuDeviceGetUuid_v2, (CUuuid * out, CUdevice dev), uuid(out, dev))
SIM_API(cuDeviceGetPCIBusId, (char* out, int length, CUdevice dev), pci_bus_id(out, length, dev))
SIM_API(cuDeviceGetByPCIBusId, (CUdevice * out, const char* text), by_pci_bus_id(out, text))
SIM_API(cuDeviceGetAttribute, (int* out, CUdevice_attribute which, CUdevice dev),
        attribute(out, which, dev))
SIM_API(cuDeviceComputeCapability, (int* major, int* minor, CUdevice dev),
        compute_capability(major, minor, dev))
SIM_API(cuDeviceGetProperties, (CUdevprop * out, CUdevice dev), properties(out, dev))
SIM_API(cuDeviceCanAccessPeer, (int* out, CUdevice from, CUdevice to), peer(out, from, to))
SIM_API(cuDeviceGetP2PAttribute,
        (int* out, CUdevice_P2PAttribute which, CUdevice from, CUdevice to),
        peer_attribute(out, which, from, to))
SIM_API(cuDeviceGetExecAffinitySupport, (int* out, CUexecAffinityType, CUdevice), put(out, 0))
SIM_API(cuDeviceGetTexture1DLinearMaxWidth, (size_t * out, CUarray_format, unsigned, CUdevice),
        put(out, 268435456))
SIM_API(cuProfilerStart, (), CUDA_SUCCESS)
SIM_API(cuProfilerStop, (), CUDA_SUCCESS)
