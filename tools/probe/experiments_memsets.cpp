// SPDX-License-Identifier: Apache-2.0
// Copyright The hostwait authors
// Memsets, waiting by name and asynchronous.
#include "stage.hpp"

namespace hostwait::probe {

namespace {

constexpr std::size_t mib = 1 << 20;

enum class memory { device, pinned, registered, managed, pool, marked };
struct target {
  const char* name;
  memory kind;
};
constexpr target targets[] = {
    {"device", memory::device},   {"pinned", memory::pinned}, {"registered", memory::registered},
    {"managed", memory::managed}, {"pool", memory::pool},     {"sync_memops", memory::marked}};

CUdeviceptr at(stage& s, memory m) {
  switch (m) {
    case memory::device:
      return s.device_block();
    case memory::pinned:
      return reinterpret_cast<CUdeviceptr>(s.pinned_block());
    case memory::registered:
      return reinterpret_cast<CUdeviceptr>(s.registered_block());
    case memory::managed:
      return s.managed_block();
    case memory::pool:
      return s.pool_block();
    case memory::marked:
      break;
  }
  return s.own.memory;
}

void prepare(stage& s, memory m) {
  if (m == memory::marked) {
    s.use<row_cuMemAlloc_v2>(&s.own.memory, mib);
    const unsigned on = 1;
    s.use<row_cuPointerSetAttribute>(&on, CU_POINTER_ATTRIBUTE_SYNC_MEMOPS, s.own.memory);
  }
  at(s, m);
}

constexpr unsigned char byte = 0;
constexpr unsigned word = 0;

}  // namespace

void add_memsets(catalogue& c) {
  for (const target& t : targets) {
    const memory m = t.kind;
    const auto ready = [m](stage& s) { prepare(s, m); };
    const std::string name = t.name;
    for (std::size_t n : {std::size_t{4}, mib}) {
      if (n == 4 && m == memory::marked) continue;
      const std::string size = n == 4 ? "4" : "1M";
      auto& sync =
          c.add("memset/cuMemsetD8_v2/" + name + "/" + size + "/-", "memset that waits by name",
                [m, n](stage& s) { s.measured<row_cuMemsetD8_v2>(at(s, m), byte, n); });
      sync.prepare = ready;
      sync.quick = n == mib;
      auto& async = c.add("memset/cuMemsetD8Async/" + name + "/" + size + "/same",
                          "asynchronous memset", [m, n](stage& s) {
                            s.measured<row_cuMemsetD8Async>(at(s, m), byte, n, s.busy_stream());
                          });
      async.prepare = ready;
      async.quick = n == mib && m == memory::pinned;
    }
    if (m == memory::marked) continue;
    c.add("memset/cuMemsetD32_v2/" + name + "/1M/-", "memset of words", [m](stage& s) {
       s.measured<row_cuMemsetD32_v2>(at(s, m), word, mib / 4);
     }).prepare = ready;
    c.add("memset/cuMemsetD2D8_v2/" + name + "/1M/-", "memset in rows", [m](stage& s) {
       s.measured<row_cuMemsetD2D8_v2>(at(s, m), std::size_t{1024}, byte, std::size_t{1024},
                                       std::size_t{1024});
     }).prepare = ready;
    c.add("memset/cuMemsetD2D32Async/" + name + "/1M/same", "asynchronous memset in rows",
          [m](stage& s) {
            s.measured<row_cuMemsetD2D32Async>(at(s, m), std::size_t{1024}, word, std::size_t{256},
                                               std::size_t{1024}, s.busy_stream());
          })
        .prepare = ready;
  }
  c.add("memset/cuMemsetD2D32_v2/device/1M/-", "memset of words in rows", [](stage& s) {
     s.measured<row_cuMemsetD2D32_v2>(s.device_block(), std::size_t{1024}, word, std::size_t{256},
                                      std::size_t{1024});
   }).prepare = [](stage& s) { s.device_block(); };
  c.add("memset/cuMemsetD16_v2/device/1M/-", "memset of half words", [](stage& s) {
     s.measured<row_cuMemsetD16_v2>(s.device_block(), static_cast<unsigned short>(0), mib / 2);
   }).prepare = [](stage& s) { s.device_block(); };
  c.add("memset/cuMemsetD8_v2_ptds/pinned/1M/-", "per-thread form", [](stage& s) {
     s.measured<row_cuMemsetD8_v2_ptds>(at(s, memory::pinned), byte, mib);
   }).prepare = [](stage& s) { s.pinned_block(); };
}

}  // namespace hostwait::probe
