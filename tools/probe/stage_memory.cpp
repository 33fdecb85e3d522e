// SPDX-License-Identifier: Apache-2.0
// Copyright The hostwait authors
// What a stage owns: blocks of every kind of memory, and the experiments' own objects.
#include "stage.hpp"

#include <stdlib.h>

#include <cstring>

namespace hostwait::probe {

CUdeviceptr stage::device_block(unsigned which) {
  if (!device_[which]) use<row_cuMemAlloc_v2>(&device_[which], block_bytes);
  return device_[which];
}
CUdeviceptr stage::managed_block(unsigned which) {
  if (!managed_[which]) {
    use<row_cuMemAllocManaged>(&managed_[which], block_bytes, unsigned{CU_MEM_ATTACH_GLOBAL});
    // Pages that nobody has touched would be made inside the measured call.
    if (!d.simulated()) std::memset(reinterpret_cast<void*>(managed_[which]), 1, block_bytes);
  }
  return managed_[which];
}
CUdeviceptr stage::pool_block() {
  if (!pool_block_) use<row_cuMemAllocAsync>(&pool_block_, block_bytes, nonblocking);
  return pool_block_;
}
void* stage::pinned_block(unsigned which) {
  if (!pinned_[which]) use<row_cuMemHostAlloc>(&pinned_[which], block_bytes, 0u);
  return pinned_[which];
}
void* stage::pageable_block(unsigned which) {
  if (!pageable_[which]) {
    if (::posix_memalign(&pageable_[which], 4096, block_bytes) != 0)
      throw unsupported{"no host memory"};
    std::memset(pageable_[which], 1, block_bytes);
  }
  return pageable_[which];
}
void* stage::registered_block() {
  if (!registered_) {
    void* at = nullptr;
    if (::posix_memalign(&at, 4096, block_bytes) != 0) throw unsupported{"no host memory"};
    std::memset(at, 1, block_bytes);
    use<row_cuMemHostRegister_v2>(at, block_bytes, 0u);
    registered_ = at;
  }
  return registered_;
}

void stage::touch_managed() {
  for (CUdeviceptr at : managed_)
    if (at) std::memset(reinterpret_cast<void*>(at), 1, 64);
}

namespace {

template <class Handle, class Function>
void drop(Handle& handle, Function function) {
  if (handle && function != nullptr) function(handle);
  handle = Handle{};
}

}  // namespace

void stage::give_back() {
  drop(own.exec, d.cuGraphExecDestroy);
  drop(own.graph, d.cuGraphDestroy);
  drop(own.memory, d.get<row_cuMemFree_v2>());
  drop(own.second, d.get<row_cuMemFree_v2>());
  drop(own.host, d.get<row_cuMemFreeHost>());
  drop(own.array, d.get<row_cuArrayDestroy>());
  drop(own.array2, d.get<row_cuArrayDestroy>());
  drop(own.mipmapped, d.get<row_cuMipmappedArrayDestroy>());
  drop(own.event, d.cuEventDestroy_v2);
  drop(own.stream, d.cuStreamDestroy_v2);
  drop(own.module, d.get<row_cuModuleUnload>());
  drop(own.library, d.get<row_cuLibraryUnload>());
  drop(own.pool, d.cuMemPoolDestroy);
  drop(own.context, d.get<row_cuCtxDestroy_v2>());
  drop(own.green, d.get<row_cuGreenCtxDestroy>());
  drop(own.page, ::free);
}

}  // namespace hostwait::probe
