// SPDX-License-Identifier: Apache-2.0
// Copyright The hostwait authors
// NumPy's type strings ("<f4", "|V16", "<M8[ns]") and field descriptions.
#pragma once

#include "error.hpp"

namespace hostwait::cai {

struct element_type {
  char kind;
  char byteorder;
  bool lenient;  // accepted by a lenient bit only
  char unit[12];
  uint64_t itemsize;
};

// `bits_allowed`: "|t1" is accepted (bit masks).
int parse_typestr(const char* text, uint64_t length, const hostwait_cai_policy& policy,
                  bool bits_allowed, const char* key, int32_t index, const error_sink& sink,
                  element_type* out);

// The fields must add up to the item size. Fields may have any type with a size.
int check_fields(const hostwait_cai_field* fields, uint64_t count, uint64_t itemsize,
                 const error_sink& sink);

}  // namespace hostwait::cai
