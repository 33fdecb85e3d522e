// SPDX-License-Identifier: Apache-2.0
// Copyright The hostwait authors
// Known memory: device, pinned, registered, managed and stream-ordered ranges, and pools.
#pragma once

#include <optional>

#include "state.hpp"

namespace hostwait::sim {

enum class memory_kind : uint8_t { pageable, device, pinned, registered, managed, stream_ordered };

struct pool {
  static constexpr uint32_t right_magic = 0x4853504f;
  uint32_t magic = right_magic;
  int device;
  std::atomic<uint64_t> used{0}, used_high{0}, release_threshold{0};
  std::atomic<int> reuse_flags[3]{1, 1, 1};
};

struct range {
  uintptr_t base = 0;
  size_t size = 0;
  memory_kind kind = memory_kind::pageable;
  context* ctx = nullptr;
  int device = 0;
  unsigned flags = 0;
  pool* from = nullptr;
  uint64_t buffer_id = 0;
  bool owned = true;  // mapped by us: unmapped when released
};

// The range that holds the address, or nothing: pageable memory.
std::optional<range> find_range(const void* address);
inline std::optional<range> find_range(CUdeviceptr address) {
  return find_range(reinterpret_cast<const void*>(address));
}
// Maps and registers; 0 when there is no memory.
uintptr_t allocate(size_t size, memory_kind kind, context* ctx, unsigned flags, pool* from);
// Takes the range that begins there out of the registry.
std::optional<range> take_range(uintptr_t base);
void unmap(const range& what);
void release_memory_of(context* ctx);
pool* find_pool(CUmemoryPool handle);
pool* default_pool(int device);

}  // namespace hostwait::sim
