// SPDX-License-Identifier: Apache-2.0
// Copyright The hostwait authors
// Copies: one description for all shapes, and the measured rules for when the host is stopped.
#pragma once

#include "state.hpp"

namespace hostwait::sim {

struct array {
  static constexpr uint32_t right_magic = 0x48534152;
  uint32_t magic = right_magic;
  context* ctx;
  char* data;
  size_t width_bytes, height, depth;  // at least 1 each
  CUDA_ARRAY3D_DESCRIPTOR description;
};
array* find_array(CUarray handle);

// One end of a copy: where its first byte is, and the distance of rows and slices.
struct copy_end {
  char* at;
  size_t row = 0, slice = 0;
  bool is_array = false;
};

struct copy_shape {
  copy_end to, from;
  size_t width, height = 1, depth = 1;
};

CUresult copy(CUstream handle, bool per_thread, bool synchronous, const copy_shape& shape);
CUresult copy_on(stream* s, bool synchronous, const copy_shape& shape);
void move_bytes(const copy_shape& shape);
uint64_t copy_busy_ns(size_t bytes);

CUresult describe(const CUDA_MEMCPY2D* from, copy_shape* out);
CUresult describe(const CUDA_MEMCPY3D* from, copy_shape* out);

inline copy_end linear(CUdeviceptr at) {
  return {reinterpret_cast<char*>(at)};
}
inline copy_end linear(const void* at) {
  return {const_cast<char*>(static_cast<const char*>(at))};
}

}  // namespace hostwait::sim
