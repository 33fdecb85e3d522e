// SPDX-License-Identifier: Apache-2.0
// Copyright The hostwait authors
// The function type of every row, taken from cuda.h: signature<row_cuMemFree_v2>::type.
//
// Trap: cuda.h declares the older versions and the _ptsz and _ptds forms only under
// __CUDA_API_VERSION_INTERNAL, and then leaves no name redefined. Include this header before any
// other header of CUDA, in its own translation units; code that calls CUDA must not use it.
#pragma once

#if defined(__cuda_cuda_h__) && !defined(__CUDA_API_VERSION_INTERNAL)
#error "signatures.hpp must come before cuda.h"
#endif
#ifndef __CUDA_API_VERSION_INTERNAL
#define __CUDA_API_VERSION_INTERNAL 1
#endif
#include <cuda.h>
#include <cudaProfiler.h>

#include <type_traits>

#include "row.hpp"

namespace hostwait {

template <row_id>
struct signature;

#define HW_ROW(symbol, kind, ...)                                                \
  static_assert(std::is_function_v<std::remove_pointer_t<decltype(&::symbol)>>); \
  template <>                                                                    \
  struct signature<row_##symbol> {                                               \
    using type = std::remove_pointer_t<decltype(&::symbol)>;                     \
  };
#define HW_AUDIT(symbol, reason)                                                 \
  static_assert(std::is_function_v<std::remove_pointer_t<decltype(&::symbol)>>); \
  template <>                                                                    \
  struct signature<row_##symbol> {                                               \
    using type = std::remove_pointer_t<decltype(&::symbol)>;                     \
  };
#include "table.def"
#undef HW_ROW
#undef HW_AUDIT

}  // namespace hostwait
