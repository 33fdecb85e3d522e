// SPDX-License-Identifier: Apache-2.0
// Copyright The hostwait authors
// Modules, libraries, functions and kernels. No device code runs here: a kernel is its name.
#pragma once

#include <map>
#include <string>

#include "state.hpp"

namespace hostwait::sim {

struct module;

struct function {
  static constexpr uint32_t right_magic = 0x4853464e;
  uint32_t magic = right_magic;
  std::string name;
  module* in;
  size_t local_bytes = 0;  // per thread; a launch that needs more than ever before waits
  int attributes[CU_FUNC_ATTRIBUTE_MAX] = {};
};

struct module {
  static constexpr uint32_t right_magic = 0x48534d4f;
  uint32_t magic = right_magic;
  context* ctx;        // null for libraries: they belong to no context
  bool lists_entries;  // PTX text: exactly its entries exist; otherwise any name does
  bool loaded = true;  // libraries load at the first use of one of their kernels
  std::map<std::string, std::unique_ptr<function>> functions;
  std::map<std::string, std::pair<CUdeviceptr, size_t>> globals;
  std::map<std::string, size_t> global_sizes;
};

function* find_function(CUfunction handle);
// Finds or makes the function of that name; null when the image lists its entries without it.
function* function_of(module* in, const std::string& name);
module* load_image(const void* image, context* ctx);

}  // namespace hostwait::sim
