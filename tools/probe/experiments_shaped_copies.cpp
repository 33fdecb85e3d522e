// SPDX-License-Identifier: Apache-2.0
// Copyright The hostwait authors
// Copies with more than two addresses and a size: 2D, 3D, arrays, peers, batches.
#include <array>
#include <cstring>

#include "stage.hpp"

namespace hostwait::probe {

namespace {

constexpr std::size_t width = 1024, height = 1024;  // 1 MiB

struct end {
  CUmemorytype type;
  std::uint64_t at;
};
end host(void* p) {
  return {CU_MEMORYTYPE_HOST, reinterpret_cast<std::uint64_t>(p)};
}
end device(CUdeviceptr p) {
  return {CU_MEMORYTYPE_DEVICE, p};
}
end array(CUarray a) {
  return {CU_MEMORYTYPE_ARRAY, reinterpret_cast<std::uint64_t>(a)};
}

// Fills either descriptor; a host or device end has rows of `width` bytes.
template <class Descriptor>
Descriptor describe(end from, end to) {
  Descriptor c{};
  c.srcMemoryType = from.type;
  c.dstMemoryType = to.type;
  if (from.type == CU_MEMORYTYPE_HOST) c.srcHost = reinterpret_cast<void*>(from.at);
  if (from.type == CU_MEMORYTYPE_DEVICE) c.srcDevice = from.at;
  if (from.type == CU_MEMORYTYPE_ARRAY) c.srcArray = reinterpret_cast<CUarray>(from.at);
  if (to.type == CU_MEMORYTYPE_HOST) c.dstHost = reinterpret_cast<void*>(to.at);
  if (to.type == CU_MEMORYTYPE_DEVICE) c.dstDevice = to.at;
  if (to.type == CU_MEMORYTYPE_ARRAY) c.dstArray = reinterpret_cast<CUarray>(to.at);
  c.srcPitch = c.dstPitch = width;
  c.WidthInBytes = width;
  c.Height = height;
  if constexpr (requires { c.Depth; }) {
    c.Depth = 1;
    c.srcHeight = c.dstHeight = height;
  }
  return c;
}

// Arrays of 1 MiB of bytes, two of them.
void make_arrays(stage& s) {
  CUDA_ARRAY3D_DESCRIPTOR a{};
  a.Width = width;
  a.Height = height;
  a.Format = CU_AD_FORMAT_UNSIGNED_INT8;
  a.NumChannels = 1;
  s.use<row_cuArray3DCreate_v2>(&s.own.array, &a);
  s.use<row_cuArray3DCreate_v2>(&s.own.array2, &a);
}
// One row, for the calls that take an offset into a one-dimensional array.
void make_lines(stage& s) {
  CUDA_ARRAY3D_DESCRIPTOR a{};
  a.Width = 65536;
  a.Format = CU_AD_FORMAT_UNSIGNED_INT8;
  a.NumChannels = 1;
  s.use<row_cuArray3DCreate_v2>(&s.own.array, &a);
  s.use<row_cuArray3DCreate_v2>(&s.own.array2, &a);
}
void make_blocks(stage& s) {
  s.device_block(0), s.device_block(1);
  s.pinned_block(0), s.pageable_block(0);
}

struct pair {
  const char* name;
  end (*from)(stage&);
  end (*to)(stage&);
  bool arrays;
};
const pair pairs[] = {
    {"pageable>device", [](stage& s) { return host(s.pageable_block()); },
     [](stage& s) { return device(s.device_block()); }, false},
    {"pinned>device", [](stage& s) { return host(s.pinned_block()); },
     [](stage& s) { return device(s.device_block()); }, false},
    {"device>pageable", [](stage& s) { return device(s.device_block()); },
     [](stage& s) { return host(s.pageable_block()); }, false},
    {"device>pinned", [](stage& s) { return device(s.device_block()); },
     [](stage& s) { return host(s.pinned_block()); }, false},
    {"device>device", [](stage& s) { return device(s.device_block()); },
     [](stage& s) { return device(s.device_block(1)); }, false},
    {"pageable>array", [](stage& s) { return host(s.pageable_block()); },
     [](stage& s) { return array(s.own.array); }, true},
    {"pinned>array", [](stage& s) { return host(s.pinned_block()); },
     [](stage& s) { return array(s.own.array); }, true},
    {"array>pageable", [](stage& s) { return array(s.own.array); },
     [](stage& s) { return host(s.pageable_block()); }, true},
    {"array>pinned", [](stage& s) { return array(s.own.array); },
     [](stage& s) { return host(s.pinned_block()); }, true},
    {"array>device", [](stage& s) { return array(s.own.array); },
     [](stage& s) { return device(s.device_block()); }, true},
    {"device>array", [](stage& s) { return device(s.device_block()); },
     [](stage& s) { return array(s.own.array); }, true},
    {"array>array", [](stage& s) { return array(s.own.array); },
     [](stage& s) { return array(s.own.array2); }, true},
};

template <row_id Row, class Descriptor, bool async>
void shaped(catalogue& c, const pair& p, bool quick) {
  auto& e = c.add(
      std::string("copy/") + rows[Row].symbol + "/" + p.name + "/1M/" + (async ? "same" : "-"),
      async ? "descriptor, asynchronous" : "descriptor, waits by name", [&p](stage& s) {
        const Descriptor d = describe<Descriptor>(p.from(s), p.to(s));
        if constexpr (async)
          s.measured<Row>(&d, s.busy_stream());
        else
          s.measured<Row>(&d);
      });
  e.prepare = [arrays = p.arrays](stage& s) {
    make_blocks(s);
    if (arrays) make_arrays(s);
  };
  e.quick = quick;
}

void descriptors(catalogue& c) {
  for (const pair& p : pairs) {
    if (!p.arrays) {
      shaped<row_cuMemcpy2D_v2, CUDA_MEMCPY2D, false>(c, p, false);
      shaped<row_cuMemcpy2DUnaligned_v2, CUDA_MEMCPY2D, false>(c, p, p.from == pairs[2].from);
    }
    shaped<row_cuMemcpy2DAsync_v2, CUDA_MEMCPY2D, true>(c, p, false);
    shaped<row_cuMemcpy3D_v2, CUDA_MEMCPY3D, false>(c, p, false);
    shaped<row_cuMemcpy3DAsync_v2, CUDA_MEMCPY3D, true>(c, p, false);
  }
}

void lines(catalogue& c) {
  constexpr std::size_t n = 65536;
  const auto ready = [](stage& s) {
    make_blocks(s);
    make_lines(s);
  };
  c.add("copy/cuMemcpyHtoA_v2/pageable/64K/-", "upload to an array", [](stage& s) {
     s.measured<row_cuMemcpyHtoA_v2>(s.own.array, std::size_t{0}, s.pageable_block(), n);
   }).prepare = ready;
  c.add("copy/cuMemcpyAtoH_v2/pageable/64K/-", "download from an array", [](stage& s) {
     s.measured<row_cuMemcpyAtoH_v2>(s.pageable_block(), s.own.array, std::size_t{0}, n);
   }).prepare = ready;
  c.add("copy/cuMemcpyHtoA_v2/pinned/64K/-", "upload to an array", [](stage& s) {
     s.measured<row_cuMemcpyHtoA_v2>(s.own.array, std::size_t{0}, s.pinned_block(), n);
   }).prepare = ready;
  c.add("copy/cuMemcpyAtoH_v2/pinned/64K/-", "download from an array", [](stage& s) {
     s.measured<row_cuMemcpyAtoH_v2>(s.pinned_block(), s.own.array, std::size_t{0}, n);
   }).prepare = ready;
  c.add("copy/cuMemcpyAtoA_v2/array/64K/-", "array to array", [](stage& s) {
     s.measured<row_cuMemcpyAtoA_v2>(s.own.array, std::size_t{0}, s.own.array2, std::size_t{0}, n);
   }).prepare = ready;
  c.add("copy/cuMemcpyAtoD_v2/array/64K/-", "array to device", [](stage& s) {
     s.measured<row_cuMemcpyAtoD_v2>(s.device_block(), s.own.array, std::size_t{0}, n);
   }).prepare = ready;
  c.add("copy/cuMemcpyDtoA_v2/array/64K/-", "device to array", [](stage& s) {
     s.measured<row_cuMemcpyDtoA_v2>(s.own.array, std::size_t{0}, s.device_block(), n);
   }).prepare = ready;
  for (bool pinned : {false, true}) {
    const std::string kind = pinned ? "pinned" : "pageable";
    const auto memory = [pinned](stage& s) {
      return pinned ? s.pinned_block() : s.pageable_block();
    };
    c.add("copy/cuMemcpyHtoAAsync_v2/" + kind + "/64K/same", "asynchronous upload to an array",
          [memory](stage& s) {
            s.measured<row_cuMemcpyHtoAAsync_v2>(s.own.array, std::size_t{0}, memory(s), n,
                                                 s.busy_stream());
          })
        .prepare = ready;
    c.add("copy/cuMemcpyAtoHAsync_v2/" + kind + "/64K/same", "asynchronous download from an array",
          [memory](stage& s) {
            s.measured<row_cuMemcpyAtoHAsync_v2>(memory(s), s.own.array, std::size_t{0}, n,
                                                 s.busy_stream());
          })
        .prepare = ready;
  }
}

void peers(catalogue& c) {
  c.add("copy/cuMemcpyPeer/one_context/1M/-", "peer copy within one context", [](stage& s) {
     s.measured<row_cuMemcpyPeer>(s.device_block(), s.context, s.device_block(1), s.context,
                                  std::size_t{1} << 20);
   }).prepare = make_blocks;
  c.add("copy/cuMemcpyPeerAsync/one_context/1M/same", "peer copy within one context", [](stage& s) {
     s.measured<row_cuMemcpyPeerAsync>(s.device_block(), s.context, s.device_block(1), s.context,
                                       std::size_t{1} << 20, s.busy_stream());
   }).prepare = make_blocks;
  for (bool async : {false, true}) {
    c.add(std::string("copy/") + (async ? "cuMemcpy3DPeerAsync" : "cuMemcpy3DPeer") +
              "/one_context/1M/" + (async ? "same" : "-"),
          "peer copy by descriptor within one context",
          [async](stage& s) {
            auto d =
                describe<CUDA_MEMCPY3D_PEER>(device(s.device_block()), device(s.device_block(1)));
            d.srcContext = d.dstContext = s.context;
            if (async)
              s.measured<row_cuMemcpy3DPeerAsync>(&d, s.busy_stream());
            else
              s.measured<row_cuMemcpy3DPeer>(&d);
          })
        .prepare = make_blocks;
    auto& two = c.add(
        std::string("copy/") + (async ? "cuMemcpyPeerAsync" : "cuMemcpyPeer") + "/two_devices/1M/" +
            (async ? "same" : "-"),
        "peer copy to another device", [async](stage& s) {
          if (async)
            s.measured<row_cuMemcpyPeerAsync>(s.own.second, s.own.context, s.device_block(),
                                              s.context, std::size_t{1} << 20, s.busy_stream());
          else
            s.measured<row_cuMemcpyPeer>(s.own.second, s.own.context, s.device_block(), s.context,
                                         std::size_t{1} << 20);
        });
    two.devices = 2;
    two.prepare = [](stage& s) {
      make_blocks(s);
      s.use_other("cuDevicePrimaryCtxRetain", s.d.cuDevicePrimaryCtxRetain, &s.own.context,
                  s.device == 0 ? 1 : 0);
      s.use_other("cuCtxSetCurrent", s.d.cuCtxSetCurrent, s.own.context);
      const auto allocate = s.d.get<row_cuMemAlloc_v2>();
      const CUresult r = allocate(&s.own.second, std::size_t{1} << 20);
      s.use_other("cuCtxSetCurrent", s.d.cuCtxSetCurrent, s.context);
      s.need(r, "cuMemAlloc_v2");
    };
    // A primary context is released, not destroyed.
    two.cleanup = [](stage& s) {
      s.own.context = nullptr;
      if (s.own.second) s.d.get<row_cuMemFree_v2>()(s.own.second);
      s.own.second = 0;
      s.d.get<row_cuDevicePrimaryCtxRelease_v2>()(s.device == 0 ? 1 : 0);
    };
  }
}

struct batch_shape {
  const char* name;
  bool upload, pinned;
  std::size_t each;
  CUmemcpySrcAccessOrder order;
};

void batches(catalogue& c) {
  static const batch_shape shapes[] = {
      {"pageable>device/stream_order", true, false, 65536, CU_MEMCPY_SRC_ACCESS_ORDER_STREAM},
      {"pageable>device/stream_order", true, false, 1 << 20, CU_MEMCPY_SRC_ACCESS_ORDER_STREAM},
      {"pageable>device/during_call", true, false, 65536,
       CU_MEMCPY_SRC_ACCESS_ORDER_DURING_API_CALL},
      {"pageable>device/during_call", true, false, 1 << 20,
       CU_MEMCPY_SRC_ACCESS_ORDER_DURING_API_CALL},
      {"pageable>device/any_order", true, false, 65536, CU_MEMCPY_SRC_ACCESS_ORDER_ANY},
      {"pageable>device/any_order", true, false, 1 << 20, CU_MEMCPY_SRC_ACCESS_ORDER_ANY},
      {"device>pageable/stream_order", false, false, 1 << 20, CU_MEMCPY_SRC_ACCESS_ORDER_STREAM},
      {"device>pinned/stream_order", false, true, 1 << 20, CU_MEMCPY_SRC_ACCESS_ORDER_STREAM},
      {"pinned>device/stream_order", true, true, 1 << 20, CU_MEMCPY_SRC_ACCESS_ORDER_STREAM}};
  for (const batch_shape& b : shapes) {
    auto& e = c.add(std::string("copy/cuMemcpyBatchAsync_v2/") + b.name + "/" +
                        (b.each == 65536 ? "64K" : "1M"),
                    "eight copies in a batch", [&b](stage& s) {
                      std::array<CUdeviceptr, 8> to, from;
                      std::array<std::size_t, 8> sizes;
                      const CUdeviceptr h = reinterpret_cast<CUdeviceptr>(
                          b.pinned ? s.pinned_block() : s.pageable_block());
                      for (std::size_t i = 0; i < 8; ++i) {
                        to[i] = (b.upload ? s.device_block() : h) + i * b.each;
                        from[i] = (b.upload ? h : s.device_block()) + i * b.each;
                        sizes[i] = b.each;
                      }
                      CUmemcpyAttributes attributes{};
                      attributes.srcAccessOrder = b.order;
                      std::size_t first = 0;
                      s.measured<row_cuMemcpyBatchAsync_v2>(to.data(), from.data(), sizes.data(),
                                                            std::size_t{8}, &attributes, &first,
                                                            std::size_t{1}, s.busy_stream());
                    });
    e.prepare = make_blocks;
    // The legacy stream is not allowed here.
    e.busy = {stream_kind::blocking, stream_kind::nonblocking, stream_kind::per_thread};
  }
  auto& three = c.add(
      "copy/cuMemcpy3DBatchAsync_v2/device>pageable/1M/same", "3D copies in a batch", [](stage& s) {
        CUDA_MEMCPY3D_BATCH_OP op{};
        op.src.type = op.dst.type = CU_MEMCPY_OPERAND_TYPE_POINTER;
        op.src.op.ptr.ptr = s.device_block();
        op.dst.op.ptr.ptr = reinterpret_cast<CUdeviceptr>(s.pageable_block());
        op.extent = {width, height, 1};
        op.srcAccessOrder = CU_MEMCPY_SRC_ACCESS_ORDER_STREAM;
        s.measured<row_cuMemcpy3DBatchAsync_v2>(std::size_t{1}, &op, 0ull, s.busy_stream());
      });
  three.prepare = make_blocks;
  three.busy = {stream_kind::blocking, stream_kind::nonblocking, stream_kind::per_thread};
}

}  // namespace

void add_shaped_copies(catalogue& c) {
  descriptors(c);
  lines(c);
  peers(c);
  batches(c);
}

}  // namespace hostwait::probe
