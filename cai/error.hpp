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

// An older caller's struct may end before `text`; only whole fields inside its size are written.
inline bool has(const hostwait_cai_error* err, size_t end) {
  return err->size >= end;
}

inline void clear(hostwait_cai_error* err) {
  if (err == nullptr || !has(err, offsetof(hostwait_cai_error, text))) return;
  err->code = HOSTWAIT_CAI_OK;
  err->driver = 0;
  err->index = -1;
  err->array = -1;
  err->key = "";
  if (has(err, sizeof *err)) err->text[0] = '\0';
}

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
