// SPDX-License-Identifier: Apache-2.0
// Copyright The hostwait authors
// The driver found twice, and the tail of the distribution: what a mean hides.
#include <dlfcn.h>
#include <elf.h>
#include <link.h>
#include <time.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <vector>

#include "driver.hpp"

namespace hostwait::bench {

namespace {

void* library() {
  static void* const handle = dlopen("libcuda.so.1", RTLD_NOW);
  if (handle == nullptr) {
    std::fprintf(stderr, "bench: %s\n", dlerror());
    std::exit(77);
  }
  return handle;
}

// The number of dynamic symbols is in no table: the last chain of the GNU hash ends it.
std::size_t symbol_count(const std::uint32_t* hash) {
  const std::uint32_t buckets = hash[0], first = hash[1], bloom = hash[2];
  const auto* bucket = hash + 4 + bloom * 2;  // 64-bit bloom words
  const auto* chain = bucket + buckets;
  std::uint32_t last = 0;
  for (std::uint32_t i = 0; i < buckets; i++) last = std::max(last, bucket[i]);
  if (last < first) return first;
  while ((chain[last - first] & 1) == 0) last++;
  return last + 1;
}

}  // namespace

void* handed_out(const char* symbol) {
  return dlsym(library(), symbol);
}

void* drivers_own(const char* symbol) {
  link_map* map = nullptr;
  if (dlinfo(library(), RTLD_DI_LINKMAP, &map) != 0) return nullptr;
  const ElfW(Sym)* symbols = nullptr;
  const char* names = nullptr;
  const std::uint32_t* hash = nullptr;
  for (const ElfW(Dyn)* entry = map->l_ld; entry->d_tag != DT_NULL; entry++) {
    const auto address = entry->d_un.d_ptr;
    if (entry->d_tag == DT_SYMTAB) symbols = reinterpret_cast<const ElfW(Sym)*>(address);
    if (entry->d_tag == DT_STRTAB) names = reinterpret_cast<const char*>(address);
    if (entry->d_tag == DT_GNU_HASH) hash = reinterpret_cast<const std::uint32_t*>(address);
  }
  if (symbols == nullptr || names == nullptr || hash == nullptr) return nullptr;
  const std::size_t count = symbol_count(hash);
  for (std::size_t i = 0; i < count; i++) {
    if (symbols[i].st_shndx != SHN_UNDEF && std::strcmp(names + symbols[i].st_name, symbol) == 0)
      return reinterpret_cast<void*>(map->l_addr + symbols[i].st_value);
  }
  return nullptr;
}

namespace {

template <class F>
F own(const char* symbol) {
  return reinterpret_cast<F>(drivers_own(symbol));
}

CUstream the_stream;

}  // namespace

void start_driver() {
  CUdevice device;
  CUcontext context;
  const auto init = own<decltype(&cuInit)>("cuInit");
  if (init == nullptr || init(0) != CUDA_SUCCESS ||
      own<decltype(&cuDeviceGet)>("cuDeviceGet")(&device, 0) != CUDA_SUCCESS ||
      own<decltype(&cuDevicePrimaryCtxRetain)>("cuDevicePrimaryCtxRetain")(&context, device) !=
          CUDA_SUCCESS ||
      own<decltype(&cuCtxSetCurrent)>("cuCtxSetCurrent")(context) != CUDA_SUCCESS ||
      own<decltype(&cuStreamCreate)>("cuStreamCreate")(&the_stream, CU_STREAM_NON_BLOCKING) !=
          CUDA_SUCCESS) {
    std::fprintf(stderr, "bench: the driver does not start\n");
    std::exit(77);
  }
}

CUstream idle_stream() {
  return the_stream;
}

std::uint64_t now_ns() {
  timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return static_cast<std::uint64_t>(t.tv_sec) * 1000000000u + static_cast<std::uint64_t>(t.tv_nsec);
}

__attribute__((noinline)) CUresult call_at_depth(stream_call call, CUstream stream, int depth) {
  if (depth <= 0) return call(stream);
  const CUresult result = call_at_depth(call, stream, depth - 1);
  asm volatile("" ::: "memory");  // keeps the frame: no tail call, no loop
  return result;
}

int print_latencies(const char* symbol, int calls) {
  const auto call = reinterpret_cast<stream_call>(handed_out(symbol));
  std::vector<std::uint32_t> ns(static_cast<std::size_t>(calls));
  for (int i = 0; i < 1000; i++) call(the_stream);
  for (std::uint32_t& one : ns) {
    const std::uint64_t start = now_ns();
    call(the_stream);
    one = static_cast<std::uint32_t>(std::min<std::uint64_t>(now_ns() - start, UINT32_MAX));
  }
  std::sort(ns.begin(), ns.end());
  const auto at = [&ns](double part) {
    return ns[static_cast<std::size_t>(part * static_cast<double>(ns.size() - 1))];
  };
  std::printf("{\"p50\": %u, \"p99\": %u, \"p99.9\": %u, \"max\": %u}\n", at(0.5), at(0.99),
              at(0.999), ns.back());
  return 0;
}

}  // namespace hostwait::bench
