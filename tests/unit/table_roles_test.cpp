// SPDX-License-Identifier: Apache-2.0
// Copyright The hostwait authors
// Roles: what is read from the arguments of a call.

#include "roles.hpp"
#include "support/catch.hpp"

using namespace hostwait;

namespace {

CUstream stream(std::uint64_t handle) {
  return reinterpret_cast<CUstream>(handle);
}

int local;

}  // namespace

TEST_CASE("roles read the arguments of copies") {
  const call_facts up = roles::htod::of(0x1000, &local, 4, stream(7));
  CHECK(up.source.address == &local);
  CHECK(up.source.as == declared::host);
  CHECK(up.destination.as == declared::device);
  CHECK((up.bytes == 4 && up.has_stream && up.stream == 7));

  const call_facts down = roles::dtoh::of(&local, 0x1000, 8);
  CHECK((down.source.as == declared::device && down.destination.address == &local));
  CHECK((down.bytes == 8 && !down.has_stream));

  CUarray array = reinterpret_cast<CUarray>(0x20);
  CHECK(roles::atoh::of(&local, array, 16, 4).source.as == declared::array);
  CHECK(roles::htoa::of(array, 16, &local, 4, stream(1)).destination.address == array);
  CHECK(roles::dtoa::of(array, 16, 0x1000, 4).destination.as == declared::array);
  CHECK(roles::atod::of(0x1000, array, 16, 4).bytes == 4);
  CHECK(roles::atoa::of(array, 0, array, 0, 9).bytes == 9);

  const call_facts across = roles::peer::of(1, reinterpret_cast<CUcontext>(2), 3,
                                            reinterpret_cast<CUcontext>(4), 5, stream(6));
  CHECK((across.aux == 4 && across.aux2 == 2 && across.bytes == 5 && across.stream == 6));
}

TEST_CASE("roles read descriptors of every version") {
  CUDA_MEMCPY3D_PEER peer{};
  peer.srcMemoryType = CU_MEMORYTYPE_UNIFIED;
  peer.srcDevice = 0x1000;
  peer.dstMemoryType = CU_MEMORYTYPE_ARRAY;
  peer.WidthInBytes = 3, peer.Height = 5, peer.Depth = 7;
  peer.srcContext = reinterpret_cast<CUcontext>(1),
  peer.dstContext = reinterpret_cast<CUcontext>(2);
  const call_facts facts = roles::descriptor::of(&peer, stream(9));
  CHECK((facts.bytes == 105 && facts.two_dimensional && facts.aux == 1 && facts.aux2 == 2));
  CHECK((facts.source.as == declared::unified && facts.destination.as == declared::array));

  CUDA_MEMCPY2D_v1 old{};
  old.srcMemoryType = CU_MEMORYTYPE_HOST;
  old.srcHost = &local;
  old.dstMemoryType = static_cast<CUmemorytype>(99);
  old.WidthInBytes = 0x10000, old.Height = 0x10000;
  const call_facts wide = roles::descriptor::of(&old);
  CHECK(wide.bytes == 0x100000000u);
  CHECK((wide.source.address == &local && wide.destination.as == declared::nothing));
}

TEST_CASE("roles never read through a null descriptor") {
  CHECK(roles::descriptor::of(static_cast<const CUDA_MEMCPY3D*>(nullptr)).bytes == 0);
  CHECK(roles::descriptor::of(static_cast<const CUDA_MEMCPY2D*>(nullptr), stream(3)).stream == 3);
  CHECK_FALSE(roles::launch_config::of(nullptr, nullptr, nullptr, nullptr).has_stream);
  CHECK(roles::capture_mode::of(nullptr).aux == 0);
  CHECK(roles::batch::of(nullptr, nullptr, nullptr, 4, nullptr, nullptr, 0, stream(5)).stream == 5);
}

TEST_CASE("roles of memsets count bytes by the width of the value") {
  CHECK(roles::memset::of(1, static_cast<unsigned char>(0), 10).bytes == 10);
  CHECK(roles::memset::of(1, static_cast<unsigned short>(0), 10, stream(2)).bytes == 20);
  CHECK(roles::memset_2d::of(1, 64, 0u, 3, 5).bytes == 60);
  CHECK(roles::memset_2d::of(1, 64, 0u, 3, 5, stream(2)).stream == 2);
}

TEST_CASE("roles of batches find the ends and the order") {
  const CUdeviceptr to[] = {1, 2}, from[] = {3, 4};
  const size_t sizes[] = {8, 8};
  size_t first = 0;
  CUmemcpyAttributes attributes{};
  attributes.srcAccessOrder = CU_MEMCPY_SRC_ACCESS_ORDER_ANY;
  const call_facts any = roles::batch::of(to, from, sizes, 2, &attributes, &first, 1, stream(5));
  CHECK(any.aux2 == 0);
  CHECK((any.source.address == from && any.destination.address == to));
  CHECK((any.source.as == declared::nothing && any.destination.as == declared::nothing));
  attributes.srcAccessOrder = CU_MEMCPY_SRC_ACCESS_ORDER_STREAM;
  CHECK(roles::batch::of(to, from, sizes, 2, &attributes, &first, 1, nullptr, stream(5)).aux2 ==
        batch_in_stream_order);
  CHECK(roles::batch::of(to, from, sizes, 2, nullptr, nullptr, 0, stream(5)).aux2 ==
        batch_in_stream_order);
  CHECK(roles::batch::of(nullptr, from, sizes, 2, nullptr, nullptr, 0, stream(5)).source.address ==
        nullptr);

  CUDA_MEMCPY3D_BATCH_OP operations[2] = {};
  for (auto& each : operations) {
    each.src.type = each.dst.type = CU_MEMCPY_OPERAND_TYPE_POINTER;
    each.srcAccessOrder = CU_MEMCPY_SRC_ACCESS_ORDER_STREAM;
  }
  const call_facts shaped = roles::batch_3d::of(2, operations, 0ull, stream(5));
  CHECK(shaped.aux2 == (batch_is_3d | batch_in_stream_order));
  CHECK(shaped.source.address == &operations[0].src.op.ptr.ptr);
  CHECK(shaped.destination.address == &operations[0].dst.op.ptr.ptr);
  operations[0].dst.type = CU_MEMCPY_OPERAND_TYPE_ARRAY;
  CHECK(roles::batch_3d::of(2, operations, 0ull, stream(5)).source.address == nullptr);
  CHECK(roles::batch_3d::of(2, nullptr, 0ull, stream(5)).source.address == nullptr);
}

TEST_CASE("roles of batches sum the sizes") {
  const size_t sizes[] = {3, 4, 5};
  const call_facts facts =
      roles::batch::of(nullptr, nullptr, sizes, 3, nullptr, nullptr, 0, stream(5));
  CHECK((facts.bytes == 12 && facts.aux == 3 && facts.stream == 5));
}

TEST_CASE("roles of events, captures, limits") {
  const auto event = reinterpret_cast<CUevent>(0x30);
  CHECK(roles::event_record::of(event, stream(2), 0u).aux == 0x30);
  CHECK(roles::stream_wait_event::of(stream(2), event, 0).stream == 2);
  CHECK(roles::capture_begin::of(stream(2), CU_STREAM_CAPTURE_MODE_RELAXED).aux == 2);
  CHECK(roles::capture_begin::of(stream(2)).aux == CU_STREAM_CAPTURE_MODE_GLOBAL);
  const CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_THREAD_LOCAL;
  CHECK(roles::capture_mode::of(&mode).aux == 1);
  CHECK(roles::limit::of(CU_LIMIT_STACK_SIZE, 99).aux2 == 99);
}
