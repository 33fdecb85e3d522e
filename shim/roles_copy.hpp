// SPDX-License-Identifier: Apache-2.0
// Copyright The hostwait authors
// The argument shapes of copies and memsets; the second half of roles.hpp. Each has two forms:
// without a stream (the waiting calls) and with one (the asynchronous calls).
#pragma once

#include "roles.hpp"

#include <cstring>

namespace hostwait::roles {

namespace detail {

// Reads one end of a 2D or 3D descriptor. A type that the driver does not know leaves it empty; it
// is read as a number, since any bits may stand in a caller's descriptor.
inline operand end_of(const CUmemorytype& given, const void* host_pointer,
                      std::uint64_t device_pointer, CUarray handle) noexcept {
  unsigned type;
  static_assert(sizeof type == sizeof given);
  std::memcpy(&type, &given, sizeof type);
  switch (type) {
    case CU_MEMORYTYPE_HOST:
      return host(host_pointer);
    case CU_MEMORYTYPE_DEVICE:
      return device(device_pointer);
    case CU_MEMORYTYPE_ARRAY:
      return array(handle);
    case CU_MEMORYTYPE_UNIFIED:
      return unified(device_pointer);
  }
  return {};
}

// As a number: any bits may stand in the caller's structure.
inline bool in_stream_order(const CUmemcpySrcAccessOrder& given) noexcept {
  unsigned order;
  static_assert(sizeof order == sizeof given);
  std::memcpy(&order, &given, sizeof order);
  return order != CU_MEMCPY_SRC_ACCESS_ORDER_DURING_API_CALL &&
         order != CU_MEMCPY_SRC_ACCESS_ORDER_ANY;
}

}  // namespace detail

struct unified {
  static call_facts of(std::uint64_t to, std::uint64_t from, std::uint64_t bytes) noexcept {
    return detail::copy(detail::unified(from), detail::unified(to), bytes);
  }
  static call_facts of(std::uint64_t to, std::uint64_t from, std::uint64_t bytes,
                       CUstream stream) noexcept {
    return detail::on(of(to, from, bytes), stream);
  }
};

struct htod {
  static call_facts of(std::uint64_t to, const void* from, std::uint64_t bytes) noexcept {
    return detail::copy(detail::host(from), detail::device(to), bytes);
  }
  static call_facts of(std::uint64_t to, const void* from, std::uint64_t bytes,
                       CUstream stream) noexcept {
    return detail::on(of(to, from, bytes), stream);
  }
};

struct dtoh {
  static call_facts of(const void* to, std::uint64_t from, std::uint64_t bytes) noexcept {
    return detail::copy(detail::device(from), detail::host(to), bytes);
  }
  static call_facts of(const void* to, std::uint64_t from, std::uint64_t bytes,
                       CUstream stream) noexcept {
    return detail::on(of(to, from, bytes), stream);
  }
};

struct dtod {
  static call_facts of(std::uint64_t to, std::uint64_t from, std::uint64_t bytes) noexcept {
    return detail::copy(detail::device(from), detail::device(to), bytes);
  }
  static call_facts of(std::uint64_t to, std::uint64_t from, std::uint64_t bytes,
                       CUstream stream) noexcept {
    return detail::on(of(to, from, bytes), stream);
  }
};

struct htoa {
  static call_facts of(CUarray to, std::uint64_t, const void* from, std::uint64_t bytes) noexcept {
    return detail::copy(detail::host(from), detail::array(to), bytes);
  }
  static call_facts of(CUarray to, std::uint64_t offset, const void* from, std::uint64_t bytes,
                       CUstream stream) noexcept {
    return detail::on(of(to, offset, from, bytes), stream);
  }
};

struct atoh {
  static call_facts of(const void* to, CUarray from, std::uint64_t, std::uint64_t bytes) noexcept {
    return detail::copy(detail::array(from), detail::host(to), bytes);
  }
  static call_facts of(const void* to, CUarray from, std::uint64_t offset, std::uint64_t bytes,
                       CUstream stream) noexcept {
    return detail::on(of(to, from, offset, bytes), stream);
  }
};

struct dtoa {
  static call_facts of(CUarray to, std::uint64_t, std::uint64_t from,
                       std::uint64_t bytes) noexcept {
    return detail::copy(detail::device(from), detail::array(to), bytes);
  }
};

struct atod {
  static call_facts of(std::uint64_t to, CUarray from, std::uint64_t,
                       std::uint64_t bytes) noexcept {
    return detail::copy(detail::array(from), detail::device(to), bytes);
  }
};

struct atoa {
  static call_facts of(CUarray to, std::uint64_t, CUarray from, std::uint64_t,
                       std::uint64_t bytes) noexcept {
    return detail::copy(detail::array(from), detail::array(to), bytes);
  }
};

// aux and aux2 are the contexts of source and destination.
struct peer {
  static call_facts of(std::uint64_t to, CUcontext to_context, std::uint64_t from,
                       CUcontext from_context, std::uint64_t bytes) noexcept {
    call_facts facts = detail::copy(detail::device(from), detail::device(to), bytes);
    facts.aux = detail::word(from_context);
    facts.aux2 = detail::word(to_context);
    return facts;
  }
  static call_facts of(std::uint64_t to, CUcontext to_context, std::uint64_t from,
                       CUcontext from_context, std::uint64_t bytes, CUstream stream) noexcept {
    return detail::on(of(to, to_context, from, from_context, bytes), stream);
  }
};

// 2D and 3D descriptors of every version; for the peer form aux and aux2 are the contexts.
struct descriptor {
  template <class Descriptor>
  static call_facts of(const Descriptor* copy) noexcept {
    call_facts facts;
    facts.two_dimensional = true;
    if (!copy) return facts;
    facts.source =
        detail::end_of(copy->srcMemoryType, copy->srcHost, copy->srcDevice, copy->srcArray);
    facts.destination =
        detail::end_of(copy->dstMemoryType, copy->dstHost, copy->dstDevice, copy->dstArray);
    facts.bytes = std::uint64_t{copy->WidthInBytes} * copy->Height;
    if constexpr (requires { copy->Depth; }) facts.bytes *= copy->Depth;
    if constexpr (requires { copy->srcContext; }) {
      facts.aux = detail::word(copy->srcContext);
      facts.aux2 = detail::word(copy->dstContext);
    }
    return facts;
  }
  template <class Descriptor>
  static call_facts of(const Descriptor* copy, CUstream stream) noexcept {
    return detail::on(of(copy), stream);
  }
};

// aux is the number of copies, bytes their sum; aux2 says whether some source is read in stream
// order, which is also what no attributes mean.
struct batch {
  static call_facts of(const CUdeviceptr* to, const CUdeviceptr* from, const size_t* sizes,
                       size_t count, const CUmemcpyAttributes* attributes, const size_t*,
                       size_t attribute_count, auto... rest) noexcept {
    call_facts facts = detail::on(detail::last(rest...));
    facts.aux = count;
    if (sizes)
      for (size_t i = 0; i < count; ++i) facts.bytes += sizes[i];
    bool in_order = attributes == nullptr || attribute_count == 0;
    for (size_t i = 0; attributes && i < attribute_count && i < count; ++i)
      in_order |= detail::in_stream_order(attributes[i].srcAccessOrder);
    facts.aux2 = in_order ? batch_in_stream_order : 0;
    if (from && to) facts.source.address = from, facts.destination.address = to;
    return facts;
  }
};

// Extents count elements, whose size only the driver knows: bytes stays 0. Arrays are among the
// ends of some operations: such a batch keeps no addresses.
struct batch_3d {
  static call_facts of(size_t count, const CUDA_MEMCPY3D_BATCH_OP* operations,
                       auto... rest) noexcept {
    call_facts facts = detail::on(detail::last(rest...));
    facts.aux = count;
    facts.aux2 = batch_is_3d;
    if (!operations) return facts;
    bool pointers = true;
    for (size_t i = 0; i < count && i < batch_entries_looked_at; ++i) {
      pointers &= operations[i].src.type == CU_MEMCPY_OPERAND_TYPE_POINTER &&
                  operations[i].dst.type == CU_MEMCPY_OPERAND_TYPE_POINTER;
      if (detail::in_stream_order(operations[i].srcAccessOrder))
        facts.aux2 |= batch_in_stream_order;
    }
    if (!pointers || count == 0) return facts;
    facts.source.address = &operations[0].src.op.ptr.ptr;
    facts.destination.address = &operations[0].dst.op.ptr.ptr;
    return facts;
  }
};

// The width of the value's type is the size of an element.
struct memset {
  template <class Value>
  static call_facts of(std::uint64_t to, Value, std::uint64_t elements) noexcept {
    return detail::copy({}, detail::device(to), elements * sizeof(Value));
  }
  template <class Value>
  static call_facts of(std::uint64_t to, Value value, std::uint64_t elements,
                       CUstream stream) noexcept {
    return detail::on(of(to, value, elements), stream);
  }
};

struct memset_2d {
  template <class Value>
  static call_facts of(std::uint64_t to, std::uint64_t, Value, std::uint64_t width,
                       std::uint64_t height) noexcept {
    call_facts facts = detail::copy({}, detail::device(to), width * height * sizeof(Value));
    facts.two_dimensional = true;
    return facts;
  }
  template <class Value>
  static call_facts of(std::uint64_t to, std::uint64_t pitch, Value value, std::uint64_t width,
                       std::uint64_t height, CUstream stream) noexcept {
    return detail::on(of(to, pitch, value, width, height), stream);
  }
};

}  // namespace hostwait::roles
