// SPDX-License-Identifier: Apache-2.0
// Copyright The hostwait authors
// Scratch memory for Thrust in order of the stream, for its nosync policies.
#pragma once

#include <cuda_runtime.h>

#include "cases.hpp"

struct stream_memory {
  using value_type = char;
  cudaStream_t stream;
  char* allocate(std::ptrdiff_t bytes) {
    void* made = nullptr;
    MUST(cudaMallocAsync(&made, static_cast<size_t>(bytes), stream));
    return static_cast<char*>(made);
  }
  void deallocate(char* memory, size_t) { MUST(cudaFreeAsync(memory, stream)); }
};
