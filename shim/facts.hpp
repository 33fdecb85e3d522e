// SPDX-License-Identifier: Apache-2.0
// Copyright The hostwait authors
// What a call's own arguments say, before the driver is asked anything. Filled by roles.hpp.
#pragma once

#include <cstddef>
#include <cstdint>

namespace hostwait {

// What the entry point itself says of one end of a copy or memset.
enum class declared : std::uint8_t {
  nothing,  // no such operand
  host,     // a host pointer by signature (cuMemcpyHtoD's source); may be pinned or managed
  device,   // a CUdeviceptr by signature; may be managed, or pinned through its mapping
  unified,  // either (cuMemcpy): only the driver knows
  array,    // a CUDA array
};

struct operand {
  const void* address = nullptr;
  declared as = declared::nothing;
};

// The two ends of each copy of a batch, in the caller's own arrays: to be read before the call
// only.
struct batch_ends {
  const std::uint64_t *from = nullptr, *to = nullptr;
  std::size_t stride = 0, count = 0;  // bytes from one entry to the next
  std::uint64_t from_at(std::size_t i) const noexcept { return at(from, i); }
  std::uint64_t to_at(std::size_t i) const noexcept { return at(to, i); }

 private:
  std::uint64_t at(const std::uint64_t* first, std::size_t i) const noexcept {
    std::uint64_t address;
    __builtin_memcpy(&address, reinterpret_cast<const char*>(first) + i * stride, sizeof address);
    return address;
  }
};
// Of a longer batch only so many entries are looked at: each costs two pointer queries.
inline constexpr std::size_t batch_entries_looked_at = 16;

struct call_facts {
  operand source, destination;
  std::uint64_t bytes = 0;   // 0: none, or not known from the arguments
  std::uint64_t stream = 0;  // the handle as passed; meaningful if has_stream
  bool has_stream = false;
  bool per_thread = false;  // the null stream means the per-thread default stream (_ptsz, _ptds)
  bool two_dimensional = false;  // 2D and 3D descriptors: pitch and rows, not one flat range
  std::uint64_t aux = 0;         // event handle, limit number, flags: what the row's rule reads
  std::uint64_t aux2 = 0;
  batch_ends batch;
};
// aux2 of a batch.
inline constexpr std::uint64_t batch_in_stream_order = 1, batch_is_3d = 2;

}  // namespace hostwait
