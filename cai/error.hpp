// SPDX-License-Identifier: Apache-2.0
// Copyright The hostwait authors
// How every function of the exchange library reports failure: one code, and what was wrong.
#pragma once

#include <hostwait/cai.h>

#include <cstddef>
#include <cstdint>

namespace hostwait::cai {

// Where an error is written. Copies share the target; `in_mask` renames every key to "mask".
struct error_sink {
  hostwait_cai_error* target;
  int32_t array = -1;
  bool in_mask = false;
};

void clear(hostwait_cai_error* err);

// Fill the sink (if any) and return `code`.
[[gnu::format(printf, 5, 6)]] int fail(const error_sink& sink, int code, const char* key,
                                       int32_t index, const char* format, ...);
int driver_failure(const error_sink& sink, int result, const char* call);

// The fields of a struct that the caller's (perhaps older) header knows; our own beyond.
template <typename Struct>
bool knows_size(const Struct* s) {
  return s != nullptr && s->size >= sizeof(uint32_t) * 2;
}

}  // namespace hostwait::cai
