// SPDX-License-Identifier: Apache-2.0
// Copyright The hostwait authors
// Stream-ordered allocation: memory pools, asynchronous allocation and release.

#include "capture.hpp"
#include "memory.hpp"

namespace hostwait::sim {

pool* find_pool(CUmemoryPool handle) {
  auto* p = reinterpret_cast<pool*>(handle);
  return p && p->magic == pool::right_magic ? p : nullptr;
}

namespace {

CUmemoryPool handle_of(pool* p) {
  return reinterpret_cast<CUmemoryPool>(p);
}

std::mutex& pool_mutex() {
  static auto* const mutex = new std::mutex;
  return *mutex;
}

pool* make_pool(int device) {
  auto* p = kept(new pool);
  p->device = device;
  return p;
}

CUresult device_pool(CUmemoryPool* out, CUdevice number, bool current) {
  if (!out) return CUDA_ERROR_INVALID_VALUE;
  if (!device_valid(number)) return CUDA_ERROR_INVALID_DEVICE;
  default_pool(number);
  std::lock_guard guard(pool_mutex());
  *out = current ? devices[number].current_pool : devices[number].default_pool;
  return CUDA_SUCCESS;
}

CUresult set_device_pool(CUdevice number, CUmemoryPool handle) {
  if (!device_valid(number)) return CUDA_ERROR_INVALID_DEVICE;
  if (!find_pool(handle)) return CUDA_ERROR_INVALID_VALUE;
  default_pool(number);
  std::lock_guard guard(pool_mutex());
  devices[number].current_pool = handle;
  return CUDA_SUCCESS;
}

CUresult create(CUmemoryPool* out, const CUmemPoolProps* props) {
  if (!out || !props) return CUDA_ERROR_INVALID_VALUE;
  if (props->location.type != CU_MEM_LOCATION_TYPE_DEVICE || !device_valid(props->location.id))
    return CUDA_ERROR_INVALID_VALUE;
  *out = handle_of(make_pool(props->location.id));
  return CUDA_SUCCESS;
}

CUresult destroy(CUmemoryPool handle) {
  pool* p = find_pool(handle);
  if (!p) return CUDA_ERROR_INVALID_VALUE;
  std::lock_guard guard(pool_mutex());
  device& d = devices[p->device];
  if (d.default_pool == handle) return CUDA_ERROR_INVALID_VALUE;
  if (d.current_pool == handle) d.current_pool = d.default_pool;
  p->magic = 0;  // leaked: ranges may still name it
  return CUDA_SUCCESS;
}

CUresult allocate_async(CUdeviceptr* out, size_t size, pool* from, CUstream handle,
                        bool per_thread) {
  CUresult error;
  stream* s = find_stream(handle, per_thread, &error);
  if (!s) return error;
  if (!out || !size) return CUDA_ERROR_INVALID_VALUE;
  if (!from) {
    CUmemoryPool current;
    if (CUresult result = device_pool(&current, s->ctx->device, true)) return result;
    from = find_pool(current);
  }
  *out = allocate(size, memory_kind::stream_ordered, s->ctx, 0, from);
  if (!*out) return CUDA_ERROR_OUT_OF_MEMORY;
  uint64_t used = from->used += size;
  uint64_t high = from->used_high;
  while (high < used && !from->used_high.compare_exchange_weak(high, used)) {
  }
  return enqueue(s, CU_GRAPH_NODE_TYPE_MEM_ALLOC, {});
}

CUresult allocate_from(CUdeviceptr* out, size_t size, CUmemoryPool handle, CUstream s,
                       bool per_thread) {
  pool* from = find_pool(handle);
  return from ? allocate_async(out, size, from, s, per_thread) : CUDA_ERROR_INVALID_VALUE;
}

CUresult free_async(CUdeviceptr at, CUstream handle, bool per_thread) {
  CUresult error;
  stream* s = find_stream(handle, per_thread, &error);
  if (!s) return error;
  if (!at) return CUDA_SUCCESS;
  auto found = find_range(at);
  if (!found || found->base != at) return CUDA_ERROR_INVALID_VALUE;
  if (found->kind != memory_kind::stream_ordered && found->kind != memory_kind::device)
    return CUDA_ERROR_INVALID_VALUE;
  work item;
  item.run = [at] {
    auto taken = take_range(at);
    if (!taken) return;
    if (taken->from) taken->from->used -= taken->size;
    unmap(*taken);
  };
  return enqueue(s, CU_GRAPH_NODE_TYPE_MEM_FREE, std::move(item));
}

CUresult attribute(CUmemoryPool handle, CUmemPool_attribute which, void* value, bool set) {
  pool* p = find_pool(handle);
  if (!p || !value) return CUDA_ERROR_INVALID_VALUE;
  if (which >= CU_MEMPOOL_ATTR_REUSE_FOLLOW_EVENT_DEPENDENCIES &&
      which <= CU_MEMPOOL_ATTR_REUSE_ALLOW_INTERNAL_DEPENDENCIES) {
    auto& flag = p->reuse_flags[which - CU_MEMPOOL_ATTR_REUSE_FOLLOW_EVENT_DEPENDENCIES];
    auto* number = static_cast<int*>(value);
    if (set)
      flag = *number;
    else
      *number = flag;
    return CUDA_SUCCESS;
  }
  auto* number = static_cast<cuuint64_t*>(value);
  switch (which) {
    case CU_MEMPOOL_ATTR_RELEASE_THRESHOLD:
      if (set)
        p->release_threshold = *number;
      else
        *number = p->release_threshold;
      return CUDA_SUCCESS;
    case CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT:
    case CU_MEMPOOL_ATTR_USED_MEM_CURRENT:
      if (set) return CUDA_ERROR_INVALID_VALUE;
      *number = p->used;
      return CUDA_SUCCESS;
    case CU_MEMPOOL_ATTR_RESERVED_MEM_HIGH:
    case CU_MEMPOOL_ATTR_USED_MEM_HIGH:
      if (set)
        p->used_high = p->used.load();
      else
        *number = p->used_high;
      return CUDA_SUCCESS;
    default:
      return CUDA_ERROR_INVALID_VALUE;
  }
}

// Released memory goes back to the system at once here, so there is never anything to trim.
CUresult trim(CUmemoryPool handle) {
  return find_pool(handle) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

CUresult get_access(CUmemAccess_flags* out, CUmemoryPool handle, CUmemLocation* where) {
  pool* p = find_pool(handle);
  if (!p || !out || !where) return CUDA_ERROR_INVALID_VALUE;
  *out =
      where->id == p->device ? CU_MEM_ACCESS_FLAGS_PROT_READWRITE : CU_MEM_ACCESS_FLAGS_PROT_NONE;
  return CUDA_SUCCESS;
}

}  // namespace

pool* default_pool(int number) {
  std::lock_guard guard(pool_mutex());
  device& d = devices[number];
  if (!d.default_pool) d.default_pool = d.current_pool = handle_of(make_pool(number));
  return find_pool(d.default_pool);
}

}  // namespace hostwait::sim

using namespace hostwait::sim;

SIM_API_PTSZ(cuMemAllocAsync, (CUdeviceptr * out, size_t size, CUstream s),
             allocate_async(out, size, nullptr, s, per_thread))
SIM_API_PTSZ(cuMemAllocFromPoolAsync,
             (CUdeviceptr * out, size_t size, CUmemoryPool from, CUstream s),
             allocate_from(out, size, from, s, per_thread))
SIM_API_PTSZ(cuMemFreeAsync, (CUdeviceptr at, CUstream s), free_async(at, s, per_thread))
SIM_API(cuDeviceGetDefaultMemPool, (CUmemoryPool * out, CUdevice dev), device_pool(out, dev, false))
SIM_API(cuDeviceGetMemPool, (CUmemoryPool * out, CUdevice dev), device_pool(out, dev, true))
SIM_API(cuDeviceSetMemPool, (CUdevice dev, CUmemoryPool p), set_device_pool(dev, p))
SIM_API(cuMemPoolCreate, (CUmemoryPool * out, const CUmemPoolProps* props), create(out, props))
SIM_API(cuMemPoolDestroy, (CUmemoryPool p), destroy(p))
SIM_API(cuMemPoolTrimTo, (CUmemoryPool p, size_t), trim(p))
SIM_API(cuMemPoolGetAttribute, (CUmemoryPool p, CUmemPool_attribute which, void* value),
        attribute(p, which, value, false))
SIM_API(cuMemPoolSetAttribute, (CUmemoryPool p, CUmemPool_attribute which, void* value),
        attribute(p, which, value, true))
SIM_API(cuMemPoolGetAccess, (CUmemAccess_flags * out, CUmemoryPool p, CUmemLocation* where),
        get_access(out, p, where))
SIM_API(cuMemPoolSetAccess, (CUmemoryPool p, const CUmemAccessDesc*, size_t), trim(p))
