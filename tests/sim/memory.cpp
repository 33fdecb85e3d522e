// SPDX-License-Identifier: Apache-2.0
// Copyright The hostwait authors
// Allocation and release of device, host and managed memory. Device memory is host memory of
// this process, so that copies really move bytes.
#include "memory.hpp"

#include <sys/mman.h>
#include <unistd.h>

#include <map>
#include <shared_mutex>

#include "capture.hpp"

namespace hostwait::sim {
namespace {

constexpr size_t total_bytes = size_t{139} << 30;

struct registry {
  std::shared_mutex mutex;
  std::map<uintptr_t, range> by_base;
  uint64_t next_buffer_id = 1;
};
registry& known() {
  static registry* const instance = new registry;
  return *instance;
}

bool counts_as_device(memory_kind kind) {
  return kind == memory_kind::device || kind == memory_kind::managed ||
         kind == memory_kind::stream_ordered;
}

size_t pages(size_t size) {
  size_t page = static_cast<size_t>(sysconf(_SC_PAGESIZE));
  return (size + page - 1) / page * page;
}

}  // namespace

std::optional<range> find_range(const void* address) {
  auto value = reinterpret_cast<uintptr_t>(address);
  registry& r = known();
  std::shared_lock guard(r.mutex);
  auto after = r.by_base.upper_bound(value);
  if (after == r.by_base.begin()) return {};
  const range& found = std::prev(after)->second;
  if (value - found.base >= found.size) return {};
  return found;
}

uintptr_t allocate(size_t size, memory_kind kind, context* ctx, unsigned flags, pool* from) {
  device& d = devices[ctx->device];
  if (counts_as_device(kind) && (size > total_bytes || d.used_bytes + size > total_bytes)) return 0;
  void* at = mmap(nullptr, pages(size), PROT_READ | PROT_WRITE,
                  MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (at == MAP_FAILED) return 0;
  if (counts_as_device(kind)) d.used_bytes += size;
  auto base = reinterpret_cast<uintptr_t>(at);
  registry& r = known();
  std::unique_lock guard(r.mutex);
  r.by_base[base] = {base, size, kind, ctx, ctx->device, flags, from, r.next_buffer_id++, true};
  return base;
}

std::optional<range> take_range(uintptr_t base) {
  registry& r = known();
  std::unique_lock guard(r.mutex);
  auto found = r.by_base.find(base);
  if (found == r.by_base.end()) return {};
  range taken = found->second;
  r.by_base.erase(found);
  return taken;
}

void unmap(const range& what) {
  if (counts_as_device(what.kind)) devices[what.device].used_bytes -= what.size;
  if (what.owned) munmap(reinterpret_cast<void*>(what.base), pages(what.size));
}

void release_memory_of(context* ctx) {
  registry& r = known();
  std::unique_lock guard(r.mutex);
  for (auto at = r.by_base.begin(); at != r.by_base.end();) {
    if (at->second.ctx == ctx && at->second.kind != memory_kind::stream_ordered) {
      unmap(at->second);
      at = r.by_base.erase(at);
    } else {
      ++at;
    }
  }
}

namespace {

CUresult device_alloc(CUdeviceptr* out, size_t size, memory_kind kind, unsigned flags) {
  context* ctx = current_context();
  if (!ctx) return CUDA_ERROR_INVALID_CONTEXT;
  if (!out || size == 0) return CUDA_ERROR_INVALID_VALUE;
  if (CUresult result = refuse_in_capture(nullptr, nullptr)) return result;
  {
    lock held(q().mutex);
    wait_for_holders(held, ctx);
  }
  *out = allocate(size, kind, ctx, flags, nullptr);
  return *out ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

CUresult pitch_alloc(CUdeviceptr* out, size_t* pitch, size_t width, size_t height) {
  if (!pitch || !width || !height) return CUDA_ERROR_INVALID_VALUE;
  *pitch = (width + 511) / 512 * 512;
  return device_alloc(out, *pitch * height, memory_kind::device, 0);
}

CUresult host_alloc(void** out, size_t size, unsigned flags) {
  CUdeviceptr at = 0;
  if (!out) return CUDA_ERROR_INVALID_VALUE;
  CUresult result = device_alloc(&at, size, memory_kind::pinned, flags);
  if (!result) *out = reinterpret_cast<void*>(at);
  return result;
}

CUresult host_register(void* at, size_t size, unsigned flags) {
  context* ctx = current_context();
  if (!ctx) return CUDA_ERROR_INVALID_CONTEXT;
  if (!at || !size) return CUDA_ERROR_INVALID_VALUE;
  if (find_range(at)) return CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED;
  auto base = reinterpret_cast<uintptr_t>(at);
  registry& r = known();
  std::unique_lock guard(r.mutex);
  r.by_base[base] = {base,  size,    memory_kind::registered, ctx,  ctx->device,
                     flags, nullptr, r.next_buffer_id++,      false};
  return CUDA_SUCCESS;
}

// Unpinning waits for every stream of the context that pinned the memory.
CUresult host_release(void* at, memory_kind kind, CUresult unknown) {
  if (!current_context()) return CUDA_ERROR_INVALID_CONTEXT;
  if (!at && kind == memory_kind::pinned) return CUDA_SUCCESS;
  auto found = find_range(at);
  if (!found || found->kind != kind || found->base != reinterpret_cast<uintptr_t>(at))
    return unknown;
  if (CUresult result = refuse_in_capture(nullptr, nullptr)) return result;
  if (found->ctx->alive) wait_and_hold(found->ctx);
  if (auto taken = take_range(found->base)) unmap(*taken);
  return CUDA_SUCCESS;
}

// Released once all work submitted so far is done; the host does not wait for it.
void release_later(context* ctx, const range& taken) {
  lock held(q().mutex);
  std::vector<point> points;
  for (stream* s : ctx->streams) points.push_back({s, s->submitted});
  held.unlock();
  stream* reaper = make_stream(ctx, stream_kind::non_blocking, CU_STREAM_NON_BLOCKING, 0);
  work item;
  item.after = std::move(points);
  item.run = [taken] { unmap(taken); };
  held.lock();
  submit(held, reaper, std::move(item));
  reaper->alive = false;
}

CUresult free_memory(CUdeviceptr at) {
  if (!current_context()) return CUDA_ERROR_INVALID_CONTEXT;
  if (!at) return CUDA_SUCCESS;
  auto found = find_range(at);
  if (!found || found->base != at || !counts_as_device(found->kind))
    return CUDA_ERROR_INVALID_VALUE;
  if (CUresult result = refuse_in_capture(nullptr, nullptr)) return result;
  bool stream_ordered = found->kind == memory_kind::stream_ordered;
  if (!stream_ordered) wait_and_hold(found->ctx);
  auto taken = take_range(at);
  if (!taken) return CUDA_ERROR_INVALID_VALUE;
  if (!stream_ordered) {
    unmap(*taken);
    return CUDA_SUCCESS;
  }
  taken->from->used -= taken->size;
  release_later(taken->ctx, *taken);
  return CUDA_SUCCESS;
}

CUresult info(size_t* free_bytes, size_t* total) {
  context* ctx = current_context();
  if (!ctx) return CUDA_ERROR_INVALID_CONTEXT;
  if (free_bytes) *free_bytes = total_bytes - devices[ctx->device].used_bytes;
  if (total) *total = total_bytes;
  return CUDA_SUCCESS;
}

CUresult address_range(CUdeviceptr* base, size_t* size, CUdeviceptr at) {
  auto found = find_range(at);
  if (!found) return CUDA_ERROR_NOT_FOUND;
  if (base) *base = found->base;
  if (size) *size = found->size;
  return CUDA_SUCCESS;
}

CUresult host_flags(unsigned* out, void* at) {
  auto found = find_range(at);
  if (!out || !found || found->kind == memory_kind::device) return CUDA_ERROR_INVALID_VALUE;
  *out = found->flags;
  return CUDA_SUCCESS;
}

CUresult device_pointer(CUdeviceptr* out, void* at) {
  auto found = find_range(at);
  if (!out || !found) return CUDA_ERROR_INVALID_VALUE;
  *out = reinterpret_cast<CUdeviceptr>(at);
  return CUDA_SUCCESS;
}

CUresult managed_alloc(CUdeviceptr* out, size_t size, unsigned flags) {
  if (flags != CU_MEM_ATTACH_GLOBAL && flags != CU_MEM_ATTACH_HOST) return CUDA_ERROR_INVALID_VALUE;
  return device_alloc(out, size, memory_kind::managed, flags);
}

CUresult total_mem(size_t* out, CUdevice number) {
  if (!out) return CUDA_ERROR_INVALID_VALUE;
  if (!device_valid(number)) return CUDA_ERROR_INVALID_DEVICE;
  *out = total_bytes;
  return CUDA_SUCCESS;
}

CUresult prefetch(CUdeviceptr at, CUstream handle, bool per_thread) {
  CUresult error;
  stream* s = find_stream(handle, per_thread, &error);
  if (!s) return error;
  auto found = find_range(at);
  if (!found || found->kind != memory_kind::managed) return CUDA_ERROR_INVALID_VALUE;
  return enqueue(s, CU_GRAPH_NODE_TYPE_EMPTY, {});
}

CUresult advise(CUdeviceptr at) {
  auto found = find_range(at);
  return found && found->kind == memory_kind::managed ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

}  // namespace
}  // namespace hostwait::sim

using namespace hostwait::sim;

SIM_API(cuMemAlloc_v2, (CUdeviceptr * out, size_t size),
        device_alloc(out, size, memory_kind::device, 0))
SIM_API(cuMemAllocPitch_v2,
        (CUdeviceptr * out, size_t* pitch, size_t width, size_t height, unsigned),
        pitch_alloc(out, pitch, width, height))
SIM_API(cuMemAllocManaged, (CUdeviceptr * out, size_t size, unsigned flags),
        managed_alloc(out, size, flags))
SIM_API(cuMemFree_v2, (CUdeviceptr at), free_memory(at))
SIM_API(cuMemAllocHost_v2, (void** out, size_t size), host_alloc(out, size, 0))
SIM_API(cuMemHostAlloc, (void** out, size_t size, unsigned flags), host_alloc(out, size, flags))
SIM_API(cuMemFreeHost, (void* at), host_release(at, memory_kind::pinned, CUDA_ERROR_INVALID_VALUE))
SIM_API(cuMemHostRegister, (void* at, size_t size, unsigned flags), host_register(at, size, flags))
SIM_API(cuMemHostRegister_v2, (void* at, size_t size, unsigned flags),
        host_register(at, size, flags))
SIM_API(cuMemHostUnregister, (void* at),
        host_release(at, memory_kind::registered, CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED))
SIM_API(cuMemHostGetFlags, (unsigned* out, void* at), host_flags(out, at))
SIM_API(cuMemHostGetDevicePointer_v2, (CUdeviceptr * out, void* at, unsigned),
        device_pointer(out, at))
SIM_API(cuMemGetInfo_v2, (size_t * free_bytes, size_t* total), info(free_bytes, total))
SIM_API(cuMemGetAddressRange_v2, (CUdeviceptr * base, size_t* size, CUdeviceptr at),
        address_range(base, size, at))
SIM_API(cuDeviceTotalMem_v2, (size_t * out, CUdevice dev), total_mem(out, dev))
SIM_API_PTSZ(cuMemPrefetchAsync, (CUdeviceptr at, size_t, CUdevice, CUstream s),
             prefetch(at, s, per_thread))
SIM_API_PTSZ(cuMemPrefetchAsync_v2, (CUdeviceptr at, size_t, CUmemLocation, unsigned, CUstream s),
             prefetch(at, s, per_thread))
SIM_API(cuMemAdvise, (CUdeviceptr at, size_t, CUmem_advise, CUdevice), advise(at))
SIM_API(cuMemAdvise_v2, (CUdeviceptr at, size_t, CUmem_advise, CUmemLocation), advise(at))
