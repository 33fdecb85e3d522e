// SPDX-License-Identifier: Apache-2.0
// Copyright The hostwait authors
// Memsets. Measured: the blocking forms wait on pinned and managed memory, not on device memory.
#include "capture.hpp"
#include "copy.hpp"
#include "memory.hpp"

namespace hostwait::sim {
namespace {

template <class T>
CUresult fill(CUstream handle, bool per_thread, bool synchronous, CUdeviceptr at, size_t pitch,
              T value, size_t width, size_t height) {
  CUresult error;
  stream* s = find_stream(handle, per_thread, &error);
  if (!s) return error;
  if (synchronous)
    if (CUresult result = refuse_wait_for_work(s)) return result;
  if (!width || !height) return CUDA_SUCCESS;
  auto found = find_range(at);
  if (!found || at % sizeof(T)) return CUDA_ERROR_INVALID_VALUE;
  bool on_device = found->kind == memory_kind::device || found->kind == memory_kind::stream_ordered;
  work item;
  item.busy_ns = copy_busy_ns(width * sizeof(T) * height);
  item.by_worker = width * sizeof(T) * height > (64 << 10) && (!synchronous || on_device);
  item.run = [=] {
    for (size_t y = 0; y < height; ++y) {
      auto* row = reinterpret_cast<T*>(at + y * pitch);
      for (size_t x = 0; x < width; ++x) row[x] = value;
    }
  };
  point done{};
  lock held(q().mutex);
  bool waits = synchronous && !on_device && !s->capturing;
  if (CUresult result = enqueue_locked(held, s, CU_GRAPH_NODE_TYPE_MEMSET, std::move(item), &done))
    return result;
  if (waits) wait_for(held, {done});
  return CUDA_SUCCESS;
}

}  // namespace
}  // namespace hostwait::sim

using namespace hostwait::sim;

#define SIM_MEMSET(bits, type)                                                             \
  SIM_API_PTDS(cuMemsetD##bits##_v2, (CUdeviceptr at, type value, size_t n),               \
               fill<type>(nullptr, per_thread, true, at, 0, value, n, 1))                  \
  SIM_API_PTSZ(cuMemsetD##bits##Async, (CUdeviceptr at, type value, size_t n, CUstream s), \
               fill<type>(s, per_thread, false, at, 0, value, n, 1))                       \
  SIM_API_PTDS(cuMemsetD2D##bits##_v2,                                                     \
               (CUdeviceptr at, size_t pitch, type value, size_t width, size_t height),    \
               fill<type>(nullptr, per_thread, true, at, pitch, value, width, height))     \
  SIM_API_PTSZ(                                                                            \
      cuMemsetD2D##bits##Async,                                                            \
      (CUdeviceptr at, size_t pitch, type value, size_t width, size_t height, CUstream s), \
      fill<type>(s, per_thread, false, at, pitch, value, width, height))
SIM_MEMSET(8, unsigned char)
SIM_MEMSET(16, unsigned short)
SIM_MEMSET(32, unsigned int)
