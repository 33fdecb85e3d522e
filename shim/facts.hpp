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
};
// A batch: aux is the number of copies; `source` and `destination` point to the first copy's
// addresses in the caller's own arrays, of which nothing is `declared`; aux2 says the rest.
inline constexpr std::uint64_t batch_in_stream_order = 1, batch_is_3d = 2;

}  // namespace hostwait
