// SPDX-License-Identifier: Apache-2.0
// Copyright The hostwait authors
// Allocation and release of device, host and managed memory and of arrays.
#include <stdlib.h>

#include <cstring>

#include "stage.hpp"

namespace hostwait::probe {

namespace {

constexpr std::size_t kib = 1024, mib = 1 << 20, gib = std::size_t{1} << 30;

std::string size_name(std::size_t n) {
  return n >= gib   ? std::to_string(n / gib) + "G"
         : n >= mib ? std::to_string(n / mib) + "M"
         : n >= kib ? std::to_string(n / kib) + "K"
                    : std::to_string(n);
}

// The object is gone when the call worked.
template <class Handle>
void forget(CUresult r, Handle& handle) {
  if (r == CUDA_SUCCESS) handle = Handle{};
}

void device_memory(catalogue& c) {
  for (std::size_t n : {std::size_t{256}, 64 * kib, mib, 2 * mib, 64 * mib, gib}) {
    auto& take = c.add("alloc/cuMemAlloc_v2/" + size_name(n), "device memory",
                       [n](stage& s) { s.measured<row_cuMemAlloc_v2>(&s.own.memory, n); });
    take.quick = n == mib;
    auto& give = c.add("free/cuMemFree_v2/" + size_name(n), "device memory", [](stage& s) {
      forget(s.measured<row_cuMemFree_v2>(s.own.memory), s.own.memory);
    });
    give.prepare = [n](stage& s) { s.use<row_cuMemAlloc_v2>(&s.own.memory, n); };
    give.quick = n == mib;
  }
  auto& neighbour =
      c.add("free/cuMemFree_v2/neighbour", "one of two small blocks of one slab",
            [](stage& s) { forget(s.measured<row_cuMemFree_v2>(s.own.memory), s.own.memory); });
  neighbour.prepare = [](stage& s) {
    s.use<row_cuMemAlloc_v2>(&s.own.memory, 4 * kib);
    s.use<row_cuMemAlloc_v2>(&s.own.second, 4 * kib);
  };
  c.add("free/cuMemFree_v2/null", "a null pointer", [](stage& s) {
     s.measured<row_cuMemFree_v2>(CUdeviceptr{0});
   }).quick = true;
  c.add("alloc/cuMemAllocPitch_v2/1M", "rows of device memory", [](stage& s) {
    static std::size_t row;
    s.measured<row_cuMemAllocPitch_v2>(&s.own.memory, &row, std::size_t{1000}, std::size_t{1024},
                                       4u);
  });
  auto& full = c.add("alloc/cuMemAlloc_v2/too_much", "more than there is: the call fails",
                     [](stage& s) { s.measured<row_cuMemAlloc_v2>(&s.own.memory, s.own.bytes); });
  full.prepare = [](stage& s) {
    std::size_t free_bytes = 0, total = 0;
    s.use_other("cuMemGetInfo_v2", s.d.cuMemGetInfo_v2, &free_bytes, &total);
    s.own.bytes = total + mib;
  };
  full.errors_fit = true;
  full.judged = false;
}

void host_memory(catalogue& c) {
  for (std::size_t n : {4 * kib, mib, 64 * mib}) {
    auto& take = c.add("alloc/cuMemHostAlloc/" + size_name(n), "pinned memory",
                       [n](stage& s) { s.measured<row_cuMemHostAlloc>(&s.own.host, n, 0u); });
    take.quick = n == mib;
    auto& give = c.add("free/cuMemFreeHost/" + size_name(n), "pinned memory", [](stage& s) {
      forget(s.measured<row_cuMemFreeHost>(s.own.host), s.own.host);
    });
    give.prepare = [n](stage& s) { s.use<row_cuMemHostAlloc>(&s.own.host, n, 0u); };
    give.quick = n == mib;
    const auto pages = [n](stage& s) {
      if (::posix_memalign(&s.own.page, 4096, n) != 0) throw unsupported{"no host memory"};
      std::memset(s.own.page, 1, n);
    };
    const auto unpin = [](stage& s) {
      if (s.own.mapped) s.d.get<row_cuMemHostUnregister>()(s.own.page);
      s.own.mapped = false;
    };
    auto& pin = c.add(
        "alloc/cuMemHostRegister_v2/" + size_name(n), "pinning of host memory", [n](stage& s) {
          s.own.mapped = s.measured<row_cuMemHostRegister_v2>(s.own.page, n, 0u) == CUDA_SUCCESS;
        });
    pin.prepare = pages;
    pin.cleanup = unpin;
    auto& loose =
        c.add("free/cuMemHostUnregister/" + size_name(n), "unpinning of host memory", [](stage& s) {
          if (s.measured<row_cuMemHostUnregister>(s.own.page) == CUDA_SUCCESS) s.own.mapped = false;
        });
    loose.prepare = [pages, n](stage& s) {
      pages(s);
      s.use<row_cuMemHostRegister_v2>(s.own.page, n, 0u);
      s.own.mapped = true;
    };
    loose.cleanup = unpin;
  }
  c.add("alloc/cuMemAllocHost_v2/1M", "pinned memory, older call",
        [](stage& s) { s.measured<row_cuMemAllocHost_v2>(&s.own.host, mib); });
}

void managed_memory(catalogue& c) {
  for (std::size_t n : {mib, 64 * mib}) {
    c.add("alloc/cuMemAllocManaged/" + size_name(n), "managed memory", [n](stage& s) {
      s.measured<row_cuMemAllocManaged>(&s.own.memory, n, unsigned{CU_MEM_ATTACH_GLOBAL});
    });
    for (bool touched : {false, true}) {
      auto& give =
          c.add("free/cuMemFree_v2/managed_" + size_name(n) + (touched ? "_touched" : "_untouched"),
                "managed memory",
                [](stage& s) { forget(s.measured<row_cuMemFree_v2>(s.own.memory), s.own.memory); });
      give.prepare = [n, touched](stage& s) {
        s.use<row_cuMemAllocManaged>(&s.own.memory, n, unsigned{CU_MEM_ATTACH_GLOBAL});
        if (touched) std::memset(reinterpret_cast<void*>(s.own.memory), 1, n);
      };
    }
  }
  auto managed = [](stage& s) { s.managed_block(); };
  constexpr std::size_t n = 8 * mib;
  struct place {
    const char* name;
    CUmemLocationType type;
  };
  for (const place& p :
       {place{"device", CU_MEM_LOCATION_TYPE_DEVICE}, place{"host", CU_MEM_LOCATION_TYPE_HOST}})
    for (bool same : {false, true}) {
      c.add(std::string("managed/cuMemPrefetchAsync_v2/") + p.name + (same ? "/same" : "/other"),
            "prefetch of managed memory",
            [type = p.type, same](stage& s) {
              CUmemLocation where{};
              where.type = type;
              where.id = type == CU_MEM_LOCATION_TYPE_DEVICE ? s.device : 0;
              s.measured<row_cuMemPrefetchAsync_v2>(s.managed_block(), n, where, 0u,
                                                    same ? s.busy_stream() : s.other_nonblocking);
            })
          .prepare = managed;
    }
  c.add("managed/cuMemAdvise_v2/-", "advice about managed memory", [](stage& s) {
     CUmemLocation where{};
     where.type = CU_MEM_LOCATION_TYPE_DEVICE;
     where.id = s.device;
     s.measured_other("cuMemAdvise_v2", s.d.cuMemAdvise_v2, s.managed_block(), n,
                      CU_MEM_ADVISE_SET_PREFERRED_LOCATION, where);
   }).prepare = managed;
  c.add("managed/cuMemRangeGetAttribute/-", "question about managed memory", [](stage& s) {
     static int value;
     s.measured_other("cuMemRangeGetAttribute", s.d.cuMemRangeGetAttribute, &value, sizeof value,
                      CU_MEM_RANGE_ATTRIBUTE_READ_MOSTLY, s.managed_block(), n);
   }).prepare = managed;
  auto& attach = c.add("managed/cuStreamAttachMemAsync/other", "attach to a stream", [](stage& s) {
    s.measured<row_cuStreamAttachMemAsync>(s.other_nonblocking, s.own.memory, std::size_t{0},
                                           unsigned{CU_MEM_ATTACH_SINGLE});
  });
  attach.prepare = [](stage& s) {
    s.use<row_cuMemAllocManaged>(&s.own.memory, mib, unsigned{CU_MEM_ATTACH_GLOBAL});
  };
  auto& discard =
      c.add("managed/cuMemDiscardBatchAsync/other", "discard of managed memory", [](stage& s) {
        CUdeviceptr at = s.own.memory;
        std::size_t size = 2 * mib;
        s.measured<row_cuMemDiscardBatchAsync>(&at, &size, std::size_t{1}, 0ull,
                                               s.other_nonblocking);
      });
  discard.prepare = [](stage& s) {
    s.use<row_cuMemAllocManaged>(&s.own.memory, 2 * mib, unsigned{CU_MEM_ATTACH_GLOBAL});
  };
}

void arrays(catalogue& c) {
  static CUDA_ARRAY3D_DESCRIPTOR shape;
  static CUDA_ARRAY_DESCRIPTOR flat;
  shape = {};
  shape.Width = shape.Height = 512;
  shape.Format = CU_AD_FORMAT_FLOAT;
  shape.NumChannels = 1;
  flat = {};
  flat.Width = flat.Height = 512;
  flat.Format = CU_AD_FORMAT_FLOAT;
  flat.NumChannels = 1;
  c.add("alloc/cuArray3DCreate_v2/1M", "an array",
        [](stage& s) { s.measured<row_cuArray3DCreate_v2>(&s.own.array, &shape); });
  c.add("alloc/cuArrayCreate_v2/1M", "an array",
        [](stage& s) { s.measured<row_cuArrayCreate_v2>(&s.own.array, &flat); });
  c.add("alloc/cuMipmappedArrayCreate/1M", "a mipmapped array",
        [](stage& s) { s.measured<row_cuMipmappedArrayCreate>(&s.own.mipmapped, &shape, 2u); });
  c.add("free/cuArrayDestroy/1M", "an array", [](stage& s) {
     forget(s.measured<row_cuArrayDestroy>(s.own.array), s.own.array);
   }).prepare = [](stage& s) { s.use<row_cuArray3DCreate_v2>(&s.own.array, &shape); };
  c.add("free/cuMipmappedArrayDestroy/1M", "a mipmapped array", [](stage& s) {
     forget(s.measured<row_cuMipmappedArrayDestroy>(s.own.mipmapped), s.own.mipmapped);
   }).prepare = [](stage& s) { s.use<row_cuMipmappedArrayCreate>(&s.own.mipmapped, &shape, 2u); };
}

}  // namespace

void add_memory(catalogue& c) {
  device_memory(c);
  host_memory(c);
  managed_memory(c);
  arrays(c);
}

}  // namespace hostwait::probe
