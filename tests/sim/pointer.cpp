// SPDX-License-Identifier: Apache-2.0
// Copyright The hostwait authors
// Pointer attributes. The singular form reports an error on pageable memory, the plural does not.
#include "memory.hpp"

namespace hostwait::sim {
namespace {

template <class T, class V>
void put(void* out, V value) {
  *static_cast<T*>(out) = static_cast<T>(value);
}

bool on_host(memory_kind kind) {
  return kind == memory_kind::pinned || kind == memory_kind::registered;
}

// False for an attribute this simulator does not know.
bool known_attribute(const range& r, CUpointer_attribute which, CUdeviceptr at, void* out) {
  switch (which) {
    case CU_POINTER_ATTRIBUTE_CONTEXT:
      put<CUcontext>(out, handle_of(r.ctx));
      return true;
    case CU_POINTER_ATTRIBUTE_MEMORY_TYPE:
      put<unsigned>(out, on_host(r.kind) ? CU_MEMORYTYPE_HOST : CU_MEMORYTYPE_DEVICE);
      return true;
    case CU_POINTER_ATTRIBUTE_DEVICE_POINTER:
      put<CUdeviceptr>(out, at);
      return true;
    case CU_POINTER_ATTRIBUTE_HOST_POINTER:
      put<void*>(out, on_host(r.kind) || r.kind == memory_kind::managed
                          ? reinterpret_cast<void*>(at)
                          : nullptr);
      return true;
    case CU_POINTER_ATTRIBUTE_SYNC_MEMOPS:
      put<int>(out, 0);
      return true;
    case CU_POINTER_ATTRIBUTE_BUFFER_ID:
      put<unsigned long long>(out, r.buffer_id);
      return true;
    case CU_POINTER_ATTRIBUTE_IS_MANAGED:
      put<int>(out, r.kind == memory_kind::managed);
      return true;
    case CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL:
      put<int>(out, r.device);
      return true;
    case CU_POINTER_ATTRIBUTE_IS_LEGACY_CUDA_IPC_CAPABLE:
      put<int>(out, r.kind == memory_kind::device);
      return true;
    case CU_POINTER_ATTRIBUTE_RANGE_START_ADDR:
      put<CUdeviceptr>(out, r.base);
      return true;
    case CU_POINTER_ATTRIBUTE_RANGE_SIZE:
      put<size_t>(out, r.size);
      return true;
    case CU_POINTER_ATTRIBUTE_MAPPED:
      put<int>(out, 1);
      return true;
    case CU_POINTER_ATTRIBUTE_ALLOWED_HANDLE_TYPES:
      put<cuuint64_t>(out, 0);
      return true;
    case CU_POINTER_ATTRIBUTE_IS_GPU_DIRECT_RDMA_CAPABLE:
      put<int>(out, 0);
      return true;
    case CU_POINTER_ATTRIBUTE_ACCESS_FLAGS:
      put<int>(out, 3);
      return true;
    case CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE:
      put<CUmemoryPool>(out, reinterpret_cast<CUmemoryPool>(r.from));
      return true;
    default:
      return false;
  }
}

// What the plural form stores for an address that nobody registered.
void unknown_attribute(CUpointer_attribute which, void* out) {
  switch (which) {
    case CU_POINTER_ATTRIBUTE_MEMORY_TYPE:
      put<unsigned>(out, 0);
      return;
    case CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL:
      put<int>(out, -2);
      return;
    case CU_POINTER_ATTRIBUTE_IS_MANAGED:
    case CU_POINTER_ATTRIBUTE_SYNC_MEMOPS:
    case CU_POINTER_ATTRIBUTE_IS_LEGACY_CUDA_IPC_CAPABLE:
    case CU_POINTER_ATTRIBUTE_MAPPED:
    case CU_POINTER_ATTRIBUTE_IS_GPU_DIRECT_RDMA_CAPABLE:
    case CU_POINTER_ATTRIBUTE_ACCESS_FLAGS:
      put<int>(out, 0);
      return;
    default:
      put<uint64_t>(out, 0);
  }
}

CUresult one(void* out, CUpointer_attribute which, CUdeviceptr at) {
  if (!current_context()) return CUDA_ERROR_INVALID_CONTEXT;
  if (!out) return CUDA_ERROR_INVALID_VALUE;
  auto found = find_range(at);
  return found && known_attribute(*found, which, at, out) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

CUresult several(unsigned count, CUpointer_attribute* which, void** out, CUdeviceptr at) {
  if (!current_context()) return CUDA_ERROR_INVALID_CONTEXT;
  if (!which || !out) return CUDA_ERROR_INVALID_VALUE;
  auto found = find_range(at);
  for (unsigned i = 0; i < count; ++i) {
    if (!found)
      unknown_attribute(which[i], out[i]);
    else if (!known_attribute(*found, which[i], at, out[i]))
      return CUDA_ERROR_INVALID_VALUE;
  }
  return CUDA_SUCCESS;
}

}  // namespace
}  // namespace hostwait::sim

using namespace hostwait::sim;

SIM_API(cuPointerGetAttribute, (void* out, CUpointer_attribute which, CUdeviceptr at),
        one(out, which, at))
SIM_API(cuPointerGetAttributes,
        (unsigned count, CUpointer_attribute* which, void** out, CUdeviceptr at),
        several(count, which, out, at))
SIM_API(cuPointerSetAttribute, (const void*, CUpointer_attribute, CUdeviceptr at),
        find_range(at) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE)
