// SPDX-License-Identifier: Apache-2.0
// Copyright The hostwait authors
// Descriptions from C values and back: type strings, element strides, extents.
#include <cstdio>
#include <cstring>

#include "layout.hpp"
#include "policy.hpp"
#include "typestr.hpp"

using namespace hostwait::cai;

int hostwait_cai_describe(const char* typestr, uint64_t ptr, uint32_t ndim, const int64_t* shape,
                          const int64_t* element_strides, int readonly, hostwait_cai_desc* desc,
                          hostwait_cai_error* err) {
  clear(err);
  const error_sink sink{err};
  if (typestr == nullptr || desc == nullptr || (ndim > 0 && shape == nullptr)) {
    return fail(sink, HOSTWAIT_CAI_ERR_INVALID, "", -1, "bad arguments");
  }
  HOSTWAIT_CAI_INIT(*desc);
  if (ndim > HOSTWAIT_CAI_MAX_NDIM) {
    return fail(sink, HOSTWAIT_CAI_ERR_NDIM, "shape", -1, "%u dimensions, at most %d are known",
                ndim, HOSTWAIT_CAI_MAX_NDIM);
  }
  hostwait_cai_policy policy = complete_policy(nullptr);
  policy.options = HOSTWAIT_CAI_ACCEPT_BYTEORDER | HOSTWAIT_CAI_ACCEPT_DTYPE;
  element_type type;
  if (const int code =
          parse_typestr(typestr, strlen(typestr), policy, ndim == 1, "typestr", -1, sink, &type)) {
    return code;
  }
  desc->version = 3;
  desc->ndim = ndim;
  desc->kind = type.kind;
  desc->byteorder = type.byteorder;
  desc->itemsize = type.itemsize;
  if (type.kind == 't') desc->flags |= HOSTWAIT_CAI_F_BITS;
  memcpy(desc->unit, type.unit, sizeof desc->unit);
  desc->readonly = readonly != 0;
  desc->stream_state = HOSTWAIT_CAI_STREAM_NONE;
  bool empty = false;
  for (uint32_t i = 0; i < ndim; ++i) {
    if (shape[i] < 0) {
      return fail(sink, HOSTWAIT_CAI_ERR_SHAPE_NEGATIVE, "shape", static_cast<int32_t>(i),
                  "shape[%u] is negative", i);
    }
    desc->shape[i] = shape[i];
    empty |= shape[i] == 0;
  }
  for (uint32_t i = 0; i < ndim && element_strides != nullptr && !empty; ++i) {
    if (__builtin_mul_overflow(element_strides[i], static_cast<int64_t>(desc->itemsize),
                               &desc->strides[i])) {
      return fail(sink, HOSTWAIT_CAI_ERR_OVERFLOW, "strides", static_cast<int32_t>(i),
                  "strides[%u] in bytes does not fit 64 bits", i);
    }
  }
  if (const int code = finish_layout(desc, element_strides == nullptr || empty, sink)) return code;
  if (desc->flags & HOSTWAIT_CAI_F_EMPTY) return HOSTWAIT_CAI_OK;
  desc->ptr = ptr;
  if (ptr == 0) {
    return fail(sink, HOSTWAIT_CAI_ERR_NULL_DATA, "data", 0, "a null pointer, but elements");
  }
  return HOSTWAIT_CAI_OK;
}

int hostwait_cai_extent(const hostwait_cai_desc* desc, int64_t* lo, int64_t* hi) {
  if (desc == nullptr || lo == nullptr || hi == nullptr || desc->ndim > HOSTWAIT_CAI_MAX_NDIM ||
      desc->itemsize > static_cast<uint64_t>(INT64_MAX)) {
    return HOSTWAIT_CAI_ERR_INVALID;
  }
  for (uint32_t i = 0; i < desc->ndim; ++i) {
    if (desc->shape[i] < 0) return HOSTWAIT_CAI_ERR_SHAPE_NEGATIVE;
  }
  return extent(*desc, lo, hi) ? HOSTWAIT_CAI_OK : HOSTWAIT_CAI_ERR_OVERFLOW;
}

int hostwait_cai_element_strides(const hostwait_cai_desc* desc, int64_t* out,
                                 hostwait_cai_error* err) {
  clear(err);
  const error_sink sink{err};
  if (desc == nullptr || out == nullptr || desc->ndim > HOSTWAIT_CAI_MAX_NDIM ||
      desc->itemsize == 0 || desc->itemsize > static_cast<uint64_t>(INT64_MAX)) {
    return fail(sink, HOSTWAIT_CAI_ERR_INVALID, "", -1, "bad arguments");
  }
  const int64_t itemsize = static_cast<int64_t>(desc->itemsize);
  for (uint32_t i = 0; i < desc->ndim; ++i) {
    if (desc->strides[i] % itemsize != 0 && desc->shape[i] > 1) {
      return fail(sink, HOSTWAIT_CAI_ERR_STRIDE_NOT_MULTIPLE, "strides", static_cast<int32_t>(i),
                  "strides[%u] is no multiple of the item size", i);
    }
    out[i] = desc->strides[i] / itemsize;  // of a dimension of 1: rounded, never used
  }
  return HOSTWAIT_CAI_OK;
}

size_t hostwait_cai_typestr(const hostwait_cai_desc* desc, char* out, size_t room) {
  if (desc == nullptr || out == nullptr || desc->kind == '\0') return 0;
  const unsigned long long number = desc->kind == 'U' ? desc->itemsize / 4 : desc->itemsize;
  char text[64];
  int length = 0;
  if (desc->unit[0] != '\0') {
    length = snprintf(text, sizeof text, "%c%c%llu[%.*s]", desc->byteorder, desc->kind, number,
                      static_cast<int>(sizeof desc->unit), desc->unit);
  } else {
    length = snprintf(text, sizeof text, "%c%c%llu", desc->byteorder, desc->kind, number);
  }
  if (length <= 0 || static_cast<size_t>(length) >= room) return 0;
  memcpy(out, text, static_cast<size_t>(length) + 1);
  return static_cast<size_t>(length);
}
