// SPDX-License-Identifier: Apache-2.0
// Copyright The hostwait authors
// Memory: what pointers say about themselves, shaped copies, arrays, memsets, pools, frees.
#include <cstring>
#include <numeric>
#include <vector>

#include "sim_test.hpp"

using namespace sim_test;

namespace {

struct answer {
  unsigned type = 99;
  int managed = 99;
  CUmemoryPool pool = nullptr;
};

answer about(const void* at) {
  answer a;
  CUpointer_attribute which[] = {CU_POINTER_ATTRIBUTE_MEMORY_TYPE, CU_POINTER_ATTRIBUTE_IS_MANAGED,
                                 CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE};
  void* out[] = {&a.type, &a.managed, &a.pool};
  SIM_OK(cuPointerGetAttributes(3, which, out, reinterpret_cast<CUdeviceptr>(at)));
  return a;
}
answer about(CUdeviceptr at) {
  return about(reinterpret_cast<void*>(at));
}

std::vector<char> counting(size_t n) {
  std::vector<char> v(n);
  std::iota(v.begin(), v.end(), 0);
  return v;
}

}  // namespace

TEST_CASE("pointers know what memory they are in, at every offset") {
  own_context context;
  char on_stack[16];
  CUdeviceptr d = new_memory(1024), managed, ordered;
  void* pinned;
  SIM_OK(cuMemHostAlloc(&pinned, 1024, 0));
  SIM_OK(cuMemAllocManaged(&managed, 1024, CU_MEM_ATTACH_GLOBAL));
  SIM_OK(cuMemAllocAsync(&ordered, 1024, nullptr));
  std::vector<char> registered(8192);
  SIM_OK(cuMemHostRegister(registered.data(), registered.size(), 0));
  CHECK(about(on_stack).type == 0);
  CHECK(about(on_stack).managed == 0);
  CHECK(about(d + 1023).type == CU_MEMORYTYPE_DEVICE);
  CHECK(about(static_cast<char*>(pinned) + 5).type == CU_MEMORYTYPE_HOST);
  CHECK(about(registered.data() + 8191).type == CU_MEMORYTYPE_HOST);
  CHECK(about(managed).managed == 1);
  CHECK(about(ordered).pool != nullptr);
  CHECK(about(d).pool == nullptr);
  unsigned type;
  CHECK(cuPointerGetAttribute(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE,
                              reinterpret_cast<CUdeviceptr>(on_stack)) == CUDA_ERROR_INVALID_VALUE);
  SIM_OK(cuMemHostUnregister(registered.data()));
  CHECK(about(registered.data()).type == 0);
  CHECK(cuMemHostUnregister(registered.data()) == CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED);
}

TEST_CASE("frees check what they are given") {
  own_context context;
  CUdeviceptr d = new_memory(64);
  CHECK(cuMemFree(d + 1) == CUDA_ERROR_INVALID_VALUE);
  SIM_OK(cuMemFree(d));
  CHECK(cuMemFree(d) == CUDA_ERROR_INVALID_VALUE);
  SIM_OK(cuMemFree(0));
  CHECK(cuMemAlloc(&d, 0) == CUDA_ERROR_INVALID_VALUE);
  CHECK(cuMemAlloc(&d, size_t{1} << 40) == CUDA_ERROR_OUT_OF_MEMORY);
}

TEST_CASE("free memory shrinks and grows with allocations") {
  own_context context;
  size_t before, during, after, total;
  SIM_OK(cuMemGetInfo(&before, &total));
  CUdeviceptr d = new_memory(1 << 20);
  SIM_OK(cuMemGetInfo(&during, &total));
  SIM_OK(cuMemFree(d));
  SIM_OK(cuMemGetInfo(&after, &total));
  CHECK(before - during == 1 << 20);
  CHECK(after == before);
}

TEST_CASE("2D copies respect pitches and offsets") {
  own_context context;
  std::vector<char> from = counting(8 * 4), to(8 * 4, 'x');
  CUdeviceptr d = new_memory(16 * 4);
  SIM_OK(cuMemsetD8(d, 0, 64));
  CUDA_MEMCPY2D up{};
  up.srcMemoryType = CU_MEMORYTYPE_HOST;
  up.srcHost = from.data();
  up.srcPitch = 8;
  up.srcXInBytes = 2;
  up.dstMemoryType = CU_MEMORYTYPE_DEVICE;
  up.dstDevice = d;
  up.dstPitch = 16;
  up.dstY = 1;
  up.WidthInBytes = 3;
  up.Height = 2;
  SIM_OK(cuMemcpy2D(&up));
  auto* bytes = reinterpret_cast<char*>(d);
  CHECK(bytes[0] == 0);
  CHECK(bytes[16] == 2);
  CHECK(bytes[18] == 4);
  CHECK(bytes[19] == 0);
  CHECK(bytes[32] == 10);
}

TEST_CASE("3D copies and arrays") {
  own_context context;
  CUDA_ARRAY3D_DESCRIPTOR wanted{4, 3, 2, CU_AD_FORMAT_UNSIGNED_INT8, 1, 0}, told;
  CUarray a;
  SIM_OK(cuArray3DCreate(&a, &wanted));
  SIM_OK(cuArray3DGetDescriptor(&told, a));
  CHECK(told.Depth == 2);
  std::vector<char> from = counting(24), to(24);
  CUDA_MEMCPY3D p{};
  p.srcMemoryType = CU_MEMORYTYPE_HOST;
  p.srcHost = from.data();
  p.srcPitch = 4;
  p.srcHeight = 3;
  p.dstMemoryType = CU_MEMORYTYPE_ARRAY;
  p.dstArray = a;
  p.WidthInBytes = 4;
  p.Height = 3;
  p.Depth = 2;
  SIM_OK(cuMemcpy3D(&p));
  CUDA_MEMCPY3D back{};
  back.srcMemoryType = CU_MEMORYTYPE_ARRAY;
  back.srcArray = a;
  back.dstMemoryType = CU_MEMORYTYPE_HOST;
  back.dstHost = to.data();
  back.dstPitch = 4;
  back.dstHeight = 3;
  back.WidthInBytes = 4;
  back.Height = 3;
  back.Depth = 2;
  SIM_OK(cuMemcpy3D(&back));
  CHECK(to == from);
  SIM_OK(cuArrayDestroy(a));
  CHECK(cuArrayDestroy(a) == CUDA_ERROR_INVALID_HANDLE);
}

TEST_CASE("an asynchronous copy out of an array into pageable memory stops the host") {
  own_context context;
  CUstream s = new_stream();
  CUDA_ARRAY_DESCRIPTOR wanted{64, 0, CU_AD_FORMAT_UNSIGNED_INT8, 1};
  CUarray a;
  SIM_OK(cuArrayCreate(&a, &wanted));
  char host[64] = {};
  CHECK(host_stops_behind(s, [&] { SIM_OK(cuMemcpyAtoHAsync(host, a, 0, 64, s)); }));
  CHECK_FALSE(host_stops_behind(s, [&] { SIM_OK(cuMemcpyHtoAAsync(a, 0, host, 64, s)); }));
}

TEST_CASE("batches copy all their parts and refuse the legacy stream") {
  own_context context;
  CUstream s = new_stream();
  CUdeviceptr a = new_memory(16), b = new_memory(16), c = new_memory(16);
  SIM_OK(cuMemsetD8(a, 1, 16));
  SIM_OK(cuMemsetD8(b, 0, 16));
  SIM_OK(cuMemsetD8(c, 0, 16));
  CUdeviceptr to[] = {b, c}, from[] = {a, a};
  size_t sizes[] = {16, 8};
  CUmemcpyAttributes attributes{};
  attributes.srcAccessOrder = CU_MEMCPY_SRC_ACCESS_ORDER_STREAM;
  size_t first = 0;
  SIM_OK(cuMemcpyBatchAsync(to, from, sizes, 2, &attributes, &first, 1, s));
  SIM_OK(cuStreamSynchronize(s));
  CHECK(reinterpret_cast<char*>(b)[15] == 1);
  CHECK(reinterpret_cast<char*>(c)[7] == 1);
  CHECK(reinterpret_cast<char*>(c)[8] == 0);
  CHECK(cuMemcpyBatchAsync(to, from, sizes, 2, &attributes, &first, 1, nullptr) ==
        CUDA_ERROR_INVALID_VALUE);
}

TEST_CASE("memsets of all widths") {
  own_context context;
  CUdeviceptr d = new_memory(64);
  SIM_OK(cuMemsetD16(d, 0x0102, 4));
  SIM_OK(cuMemsetD32(d + 8, 0x01020304, 2));
  SIM_OK(cuMemsetD2D8(d + 16, 8, 0x7f, 2, 3));
  auto* bytes = reinterpret_cast<unsigned char*>(d);
  CHECK(bytes[7] == 1);
  CHECK(bytes[8] == 4);
  CHECK(bytes[16] == 0x7f);
  CHECK(bytes[18] == 0);
  CHECK(bytes[33] == 0x7f);
  CHECK(cuMemsetD32(d + 1, 0, 1) == CUDA_ERROR_INVALID_VALUE);
}

TEST_CASE("pools count what is used; a stream-ordered free happens in stream order") {
  own_context context;
  CUstream s = new_stream();
  CUmemoryPool pool;
  CUmemPoolProps props{};
  props.allocType = CU_MEM_ALLOCATION_TYPE_PINNED;
  props.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
  SIM_OK(cuMemPoolCreate(&pool, &props));
  CUdeviceptr d;
  SIM_OK(cuMemAllocFromPoolAsync(&d, 4096, pool, s));
  cuuint64_t used = 0;
  SIM_OK(cuMemPoolGetAttribute(pool, CU_MEMPOOL_ATTR_USED_MEM_CURRENT, &used));
  CHECK(used == 4096);
  SIM_OK(hostwait_sim_hold(s));
  CHECK_FALSE(host_stops_in([&] { SIM_OK(cuMemFreeAsync(d, s)); }));
  SIM_OK(cuMemPoolGetAttribute(pool, CU_MEMPOOL_ATTR_USED_MEM_CURRENT, &used));
  CHECK(used == 4096);
  hostwait_sim_release(s);
  SIM_OK(cuStreamSynchronize(s));
  SIM_OK(cuMemPoolGetAttribute(pool, CU_MEMPOOL_ATTR_USED_MEM_CURRENT, &used));
  CHECK(used == 0);
  SIM_OK(cuMemPoolDestroy(pool));
  CHECK(cuMemPoolTrimTo(pool, 0) == CUDA_ERROR_INVALID_VALUE);
}

TEST_CASE("memory that pending work uses outlives its cuMemFree of a stream-ordered pointer") {
  own_context context;
  CUstream s = new_stream();
  CUdeviceptr d, kept = new_memory(64);
  SIM_OK(cuMemAllocAsync(&d, 64, s));
  SIM_OK(cuMemsetD8Async(d, 5, 64, s));
  SIM_OK(hostwait_sim_hold(s));
  SIM_OK(cuMemcpyDtoDAsync(kept, d, 64, s));
  CHECK_FALSE(host_stops_in([&] { SIM_OK(cuMemFree(d)); }));
  hostwait_sim_release(s);
  SIM_OK(cuStreamSynchronize(s));
  CHECK(*reinterpret_cast<char*>(kept) == 5);
}
