// SPDX-License-Identifier: Apache-2.0
// Copyright The hostwait authors
// The part of NVTX's published tool interface that an injection needs. Declared here, since the
// CUDA headers this project builds with (PyPI's runtime package) do not bring NVTX; a test compares
// it with nvtx3's own headers where they are installed.
#pragma once

#include <cstddef>
#include <cstdint>

namespace hostwait::nvtx {

enum : std::uint32_t { table_callbacks = 1 };  // export table
enum : std::uint32_t { module_core = 1, module_core2 = 5 };

enum core_callback : unsigned {
  core_range_start_ex = 4,
  core_range_start_a = 5,
  core_range_start_w = 6,
  core_range_end = 7,
  core_range_push_ex = 8,
  core_range_push_a = 9,
  core_range_push_w = 10,
  core_range_pop = 11
};

enum core2_callback : unsigned {
  core2_domain_range_start_ex = 2,
  core2_domain_range_end = 3,
  core2_domain_range_push_ex = 4,
  core2_domain_range_pop = 5,
  core2_domain_register_string_a = 10,
  core2_domain_register_string_w = 11,
  core2_domain_create_a = 12,
  core2_domain_create_w = 13,
  core2_domain_destroy = 14
};

using function_pointer = void (*)();

struct export_table_callbacks {
  std::size_t struct_size;
  int (*get_module_function_table)(std::uint32_t module, function_pointer*** table, unsigned* size);
};

using get_export_table = const void* (*)(std::uint32_t id);

enum : std::int32_t { message_ascii = 1, message_unicode = 2, message_registered = 3 };

struct event_attributes {
  std::uint16_t version, size;
  std::uint32_t category;
  std::int32_t color_type;
  std::uint32_t color;
  std::int32_t payload_type, reserved0;
  std::uint64_t payload;
  std::int32_t message_type;
  const void* message;
};

}  // namespace hostwait::nvtx
