// SPDX-License-Identifier: Apache-2.0
// Copyright The hostwait authors
// Layout arithmetic in signed 64 bits; an array that does not fit is an error, never a wrong size.
#include "layout.hpp"

#include <cstring>

namespace hostwait::cai {
namespace {

bool is_bits(const hostwait_cai_desc& d) {
  return d.kind == 't';
}

// Bytes of a bit string: whole bytes, bits are packed.
int64_t bit_bytes(uint64_t bits) {
  return static_cast<int64_t>(bits / 8 + (bits % 8 != 0));
}

bool contiguous(const hostwait_cai_desc& d, bool c_order) {
  int64_t expected = static_cast<int64_t>(d.itemsize);
  for (uint32_t k = 0; k < d.ndim; ++k) {
    const uint32_t i = c_order ? d.ndim - 1 - k : k;
    if (d.shape[i] == 1) continue;
    if (d.strides[i] != expected) return false;
    expected *= d.shape[i];  // bounded by nbytes, which was checked
  }
  return true;
}

// True unless the elements are certainly apart: sorted by stride, each dimension must step over
// all that the smaller ones span. (The exact question is a Diophantine one; an interleaved layout
// that this test cannot prove disjoint counts as overlapping.)
bool may_overlap(const hostwait_cai_desc& d) {
  uint64_t step[HOSTWAIT_CAI_MAX_NDIM];
  uint64_t length[HOSTWAIT_CAI_MAX_NDIM];
  uint32_t n = 0;
  for (uint32_t i = 0; i < d.ndim; ++i) {
    if (d.shape[i] == 1) continue;
    const uint64_t s = d.strides[i] < 0 ? 0 - static_cast<uint64_t>(d.strides[i])
                                        : static_cast<uint64_t>(d.strides[i]);
    uint32_t at = n++;
    for (; at > 0 && step[at - 1] > s; --at) {
      step[at] = step[at - 1];
      length[at] = length[at - 1];
    }
    step[at] = s;
    length[at] = static_cast<uint64_t>(d.shape[i]);
  }
  uint64_t span = d.itemsize;
  for (uint32_t i = 0; i < n; ++i) {
    if (step[i] < span) return true;
    span += step[i] * (length[i] - 1);  // at most hi - lo, which was checked
  }
  return false;
}

}  // namespace

bool extent(const hostwait_cai_desc& d, int64_t* lo, int64_t* hi) {
  *lo = *hi = 0;
  for (uint32_t i = 0; i < d.ndim; ++i) {
    if (d.shape[i] == 0) return true;
  }
  if (is_bits(d)) {
    *hi = bit_bytes(d.count);
    return true;
  }
  int64_t low = 0;
  int64_t high = static_cast<int64_t>(d.itemsize);
  for (uint32_t i = 0; i < d.ndim; ++i) {
    int64_t reach = 0;
    if (__builtin_mul_overflow(d.shape[i] - 1, d.strides[i], &reach)) return false;
    if (__builtin_add_overflow(reach < 0 ? low : high, reach, reach < 0 ? &low : &high)) {
      return false;
    }
  }
  int64_t whole = 0;
  if (__builtin_sub_overflow(high, low, &whole)) return false;
  *lo = low;
  *hi = high;
  return true;
}

int finish_layout(hostwait_cai_desc* d, bool implied, const error_sink& sink) {
  bool empty = false;
  for (uint32_t i = 0; i < d->ndim; ++i) empty |= d->shape[i] == 0;
  int64_t count = 1;
  int64_t bytes = static_cast<int64_t>(d->itemsize);
  for (uint32_t i = 0; i < d->ndim && !empty; ++i) {
    if (__builtin_mul_overflow(count, d->shape[i], &count) ||
        __builtin_mul_overflow(bytes, d->shape[i], &bytes)) {
      return fail(sink, HOSTWAIT_CAI_ERR_OVERFLOW, "shape", static_cast<int32_t>(i),
                  "the array has more than 2^63 bytes");
    }
  }
  d->count = empty ? 0 : static_cast<uint64_t>(count);
  d->nbytes = empty ? 0 : static_cast<uint64_t>(is_bits(*d) ? bit_bytes(d->count) : bytes);
  if (implied) {
    d->flags |= HOSTWAIT_CAI_F_IMPLIED_STRIDES;
    int64_t step = static_cast<int64_t>(d->itemsize);
    for (uint32_t k = d->ndim; k-- > 0;) {
      d->strides[k] = empty ? static_cast<int64_t>(d->itemsize) : step;
      if (!empty) step *= d->shape[k];
    }
  }
  if (empty) {
    d->flags |= HOSTWAIT_CAI_F_EMPTY | HOSTWAIT_CAI_F_C_CONTIGUOUS | HOSTWAIT_CAI_F_F_CONTIGUOUS;
    d->lo = d->hi = 0;
    return HOSTWAIT_CAI_OK;
  }
  if (!extent(*d, &d->lo, &d->hi)) {
    return fail(sink, HOSTWAIT_CAI_ERR_OVERFLOW, "strides", -1,
                "the array spans more than 2^63 bytes");
  }
  for (uint32_t i = 0; i < d->ndim; ++i) {
    if (d->shape[i] > 1 && d->strides[i] == 0) d->flags |= HOSTWAIT_CAI_F_BROADCAST;
    if (d->shape[i] > 1 && d->strides[i] % static_cast<int64_t>(d->itemsize) != 0) {
      d->flags |= HOSTWAIT_CAI_F_BYTE_STRIDES;
    }
  }
  if (contiguous(*d, true)) d->flags |= HOSTWAIT_CAI_F_C_CONTIGUOUS;
  if (contiguous(*d, false)) d->flags |= HOSTWAIT_CAI_F_F_CONTIGUOUS;
  if (may_overlap(*d)) d->flags |= HOSTWAIT_CAI_F_OVERLAP;
  return HOSTWAIT_CAI_OK;
}

}  // namespace hostwait::cai
