// SPDX-License-Identifier: Apache-2.0
// Copyright The hostwait authors
// Stream-ordered allocation and memory pools.
#include "stage.hpp"

namespace hostwait::probe {

namespace {

constexpr std::size_t mib = 1 << 20;

// A pool of this experiment's own that keeps what is given back, with one block taken and returned.
void make_pool(stage& s, std::size_t warm) {
  CUmemPoolProps properties{};
  properties.allocType = CU_MEM_ALLOCATION_TYPE_PINNED;
  properties.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
  properties.location.id = s.device;
  s.use_other("cuMemPoolCreate", s.d.cuMemPoolCreate, &s.own.pool, &properties);
  cuuint64_t keep = ~cuuint64_t{0};
  s.use_other("cuMemPoolSetAttribute", s.d.cuMemPoolSetAttribute, s.own.pool,
              CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, &keep);
  if (warm == 0) return;
  CUdeviceptr block = 0;
  s.use<row_cuMemAllocFromPoolAsync>(&block, warm, s.own.pool, s.other_nonblocking);
  s.use<row_cuMemFreeAsync>(block, s.other_nonblocking);
  s.use<row_cuStreamSynchronize>(s.other_nonblocking);
}

void take_block(stage& s, CUstream on) {
  s.use<row_cuMemAllocAsync>(&s.own.memory, mib, on);
  s.use<row_cuStreamSynchronize>(on);
}

void allocations(catalogue& c) {
  auto& warm = c.add("pool/cuMemAllocAsync/default/same", "from the default pool", [](stage& s) {
    s.measured<row_cuMemAllocAsync>(&s.own.memory, mib, s.busy_stream());
  });
  warm.quick = true;
  c.add("pool/cuMemAllocAsync/default/other", "from the default pool, on an idle stream",
        [](stage& s) { s.measured<row_cuMemAllocAsync>(&s.own.memory, mib, s.other_nonblocking); });
  auto& empty =
      c.add("pool/cuMemAllocFromPoolAsync/empty/other", "from a pool without memory", [](stage& s) {
        s.measured<row_cuMemAllocFromPoolAsync>(&s.own.memory, 64 * mib, s.own.pool,
                                                s.other_nonblocking);
      });
  empty.prepare = [](stage& s) { make_pool(s, 0); };
  auto& full = c.add("pool/cuMemAllocFromPoolAsync/warm/other", "from a pool that holds memory",
                     [](stage& s) {
                       s.measured<row_cuMemAllocFromPoolAsync>(&s.own.memory, 64 * mib, s.own.pool,
                                                               s.other_nonblocking);
                     });
  full.prepare = [](stage& s) { make_pool(s, 64 * mib); };
  auto& pending = c.add("pool/cuMemAllocFromPoolAsync/pending/other",
                        "the pool's block was freed behind the kernel", [](stage& s) {
                          s.use<row_cuMemFreeAsync>(s.own.second, s.busy_stream());
                          s.own.second = 0;
                          s.measured<row_cuMemAllocFromPoolAsync>(&s.own.memory, 64 * mib,
                                                                  s.own.pool, s.other_nonblocking);
                        });
  pending.prepare = [](stage& s) {
    make_pool(s, 0);
    s.use<row_cuMemAllocFromPoolAsync>(&s.own.second, 64 * mib, s.own.pool, s.other_nonblocking);
    s.use<row_cuStreamSynchronize>(s.other_nonblocking);
  };
}

void releases(catalogue& c) {
  const auto block = [](stage& s) { take_block(s, s.other_nonblocking); };
  auto& async = c.add("pool/cuMemFreeAsync/-/same", "give back on the busy stream", [](stage& s) {
    if (s.measured<row_cuMemFreeAsync>(s.own.memory, s.busy_stream()) == CUDA_SUCCESS)
      s.own.memory = 0;
  });
  async.prepare = block;
  auto& plain = c.add("free/cuMemFree_v2/pool", "a pool's memory by the plain call", [](stage& s) {
    if (s.measured<row_cuMemFree_v2>(s.own.memory) == CUDA_SUCCESS) s.own.memory = 0;
  });
  plain.prepare = block;
  plain.quick = true;
  auto& trim = c.add("pool/cuMemPoolTrimTo/idle_256M", "a pool that holds memory",
                     [](stage& s) { s.measured<row_cuMemPoolTrimTo>(s.own.pool, std::size_t{0}); });
  trim.prepare = [](stage& s) { make_pool(s, 256 * mib); };
  auto& pending =
      c.add("pool/cuMemPoolTrimTo/pending", "its memory was freed behind the kernel", [](stage& s) {
        s.use<row_cuMemFreeAsync>(s.own.memory, s.busy_stream());
        s.own.memory = 0;
        s.measured<row_cuMemPoolTrimTo>(s.own.pool, std::size_t{0});
      });
  pending.prepare = [](stage& s) {
    make_pool(s, 0);
    s.use<row_cuMemAllocFromPoolAsync>(&s.own.memory, 64 * mib, s.own.pool, s.other_nonblocking);
    s.use<row_cuStreamSynchronize>(s.other_nonblocking);
  };
  auto& destroy = c.add("pool/cuMemPoolDestroy/idle", "a pool that holds memory", [](stage& s) {
    if (s.measured_other("cuMemPoolDestroy", s.d.cuMemPoolDestroy, s.own.pool) == CUDA_SUCCESS)
      s.own.pool = nullptr;
  });
  destroy.prepare = [](stage& s) { make_pool(s, 64 * mib); };
  auto& live = c.add("pool/cuMemPoolDestroy/live", "a pool with a block in use", [](stage& s) {
    if (s.measured_other("cuMemPoolDestroy", s.d.cuMemPoolDestroy, s.own.pool) == CUDA_SUCCESS)
      s.own.pool = nullptr;
  });
  live.prepare = [](stage& s) {
    make_pool(s, 0);
    s.use<row_cuMemAllocFromPoolAsync>(&s.own.memory, mib, s.own.pool, s.other_nonblocking);
    s.use<row_cuStreamSynchronize>(s.other_nonblocking);
  };
  auto& threshold =
      c.add("pool/cuMemPoolSetAttribute/release_threshold", "the release threshold", [](stage& s) {
        cuuint64_t none = 0;
        s.measured_other("cuMemPoolSetAttribute", s.d.cuMemPoolSetAttribute, s.own.pool,
                         CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, &none);
      });
  threshold.prepare = [](stage& s) { make_pool(s, 64 * mib); };
  // With a threshold of 0 a wait also gives memory back: the time is more than the wait.
  auto& wait = c.add("pool/cuStreamSynchronize/gives_back", "a wait that gives memory back",
                     [](stage& s) { s.measured<row_cuStreamSynchronize>(s.busy_stream()); });
  wait.prepare = [](stage& s) {
    CUdeviceptr big = 0;
    s.use<row_cuMemAllocAsync>(&big, 1024 * mib, s.other_nonblocking);
    s.use<row_cuMemFreeAsync>(big, s.other_nonblocking);
  };
}

}  // namespace

void add_pools(catalogue& c) {
  allocations(c);
  releases(c);
  auto& trim = c.add("pool/cuDeviceGraphMemTrim/-", "memory of graphs",
                     [](stage& s) { s.measured<row_cuDeviceGraphMemTrim>(s.device); });
  trim.quick = true;
}

}  // namespace hostwait::probe
