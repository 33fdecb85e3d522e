// SPDX-License-Identifier: Apache-2.0
// Copyright The hostwait authors
// Parsing of type strings: every byte is looked at, every product checked.
#include "typestr.hpp"

#include <cstring>

namespace hostwait::cai {
namespace {

enum class size_rule { fits, unsupported, wrong };

size_rule judge_size(char kind, uint64_t size) {
  switch (kind) {
    case 'b':
      return size == 1 ? size_rule::fits : size_rule::wrong;
    case 'i':
    case 'u':
      return size == 1 || size == 2 || size == 4 || size == 8 ? size_rule::fits : size_rule::wrong;
    case 'f':
      if (size == 2 || size == 4 || size == 8) return size_rule::fits;
      return size == 1 || size == 10 || size == 12 || size == 16 ? size_rule::unsupported
                                                                 : size_rule::wrong;
    case 'c':
      if (size == 8 || size == 16) return size_rule::fits;
      return size == 4 || size == 24 || size == 32 ? size_rule::unsupported : size_rule::wrong;
    case 'm':
    case 'M':
      return size == 8 ? size_rule::fits : size_rule::wrong;
    default:
      return size > 0 ? size_rule::fits : size_rule::wrong;
  }
}

// Splits into byte order, kind, number and unit. The number saturates; `overflow` tells.
struct parts {
  char byteorder, kind;
  uint64_t number;
  bool overflow;
  const char* unit;
  size_t unit_length;
};

bool split(const char* text, uint64_t length, parts* out) {
  if (length < 3) return false;
  out->byteorder = text[0];
  out->kind = text[1];
  if (memchr("<>|", out->byteorder, 3) == nullptr) return false;
  if (memchr("biufcmMOSUVt", out->kind, 12) == nullptr) return false;
  uint64_t i = 2;
  out->number = 0;
  out->overflow = false;
  for (; i < length && text[i] >= '0' && text[i] <= '9'; ++i) {
    out->overflow |= __builtin_mul_overflow(out->number, uint64_t{10}, &out->number);
    out->overflow |=
        __builtin_add_overflow(out->number, static_cast<uint64_t>(text[i] - '0'), &out->number);
  }
  if (i == 2) return false;
  out->unit = text + i;
  out->unit_length = 0;
  if (i == length) return true;
  // Only times carry a unit: "[ns]", "[25us]".
  if (out->kind != 'm' && out->kind != 'M') return false;
  if (text[i] != '[' || text[length - 1] != ']' || length - i < 3) return false;
  out->unit = text + i + 1;
  out->unit_length = length - i - 2;
  for (uint64_t k = 0; k < out->unit_length; ++k) {
    const char c = out->unit[k];
    if (!((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9'))) return false;
  }
  return out->unit_length < sizeof(element_type::unit);
}

// Bytes of one item; U counts code points of four bytes.
bool item_bytes(const parts& p, uint64_t* bytes) {
  if (p.overflow || p.number > INT64_MAX) return false;
  *bytes = p.number;
  return p.kind != 'U' || !(__builtin_mul_overflow(p.number, uint64_t{4}, bytes) ||
                            *bytes > static_cast<uint64_t>(INT64_MAX));
}

int printable(uint64_t length) {
  return length < 40 ? static_cast<int>(length) : 40;
}

}  // namespace

int parse_typestr(const char* text, uint64_t length, const hostwait_cai_policy& policy,
                  bool bits_allowed, const char* key, int32_t index, const error_sink& sink,
                  element_type* out) {
  parts p{};
  if (text == nullptr || !split(text, length, &p)) {
    return fail(sink, HOSTWAIT_CAI_ERR_TYPESTR, key, index, "'%.*s' is no type string",
                text != nullptr ? printable(length) : 0, text != nullptr ? text : "");
  }
  const int shown = printable(length);
  *out = element_type{};
  out->kind = p.kind;
  if (p.kind == 'O') {
    return fail(sink, HOSTWAIT_CAI_ERR_OBJECT_DTYPE, key, index,
                "'%.*s' holds pointers to host objects", shown, text);
  }
  if (p.kind == 't') {
    if (p.number != 1 || p.overflow || !bits_allowed) {
      return fail(sink, HOSTWAIT_CAI_ERR_UNSUPPORTED_DTYPE, key, index,
                  "bit fields ('%.*s') are accepted as masks only, on request", shown, text);
    }
    out->byteorder = '|';
    out->itemsize = 1;
    return HOSTWAIT_CAI_OK;
  }
  const size_rule rule =
      item_bytes(p, &out->itemsize) ? judge_size(p.kind, p.number) : size_rule::wrong;
  if (rule == size_rule::wrong) {
    return fail(sink, HOSTWAIT_CAI_ERR_ITEMSIZE, key, index, "'%.*s' has no valid item size", shown,
                text);
  }
  if (rule == size_rule::unsupported && !(policy.options & HOSTWAIT_CAI_ACCEPT_DTYPE)) {
    return fail(sink, HOSTWAIT_CAI_ERR_UNSUPPORTED_DTYPE, key, index,
                "'%.*s' is not supported on devices", shown, text);
  }
  if (p.unit_length > 0) memcpy(out->unit, p.unit, p.unit_length);

  const bool orderless = out->itemsize == 1 || p.kind == 'S' || p.kind == 'V';
  if (orderless) {
    out->byteorder = '|';
  } else if (p.byteorder == '<') {
    out->byteorder = '<';
  } else if (p.byteorder == '>') {
    if (!(policy.options & HOSTWAIT_CAI_ACCEPT_BYTEORDER)) {
      return fail(sink, HOSTWAIT_CAI_ERR_BYTEORDER, key, index,
                  "'%.*s' is big-endian, this machine is not", shown, text);
    }
    out->byteorder = '>';
  } else {
    if (!(policy.lenient & HOSTWAIT_CAI_LENIENT_BYTEORDER)) {
      return fail(sink, HOSTWAIT_CAI_ERR_BYTEORDER, key, index,
                  "'%.*s' does not state the byte order", shown, text);
    }
    out->byteorder = '<';
    out->lenient = true;
  }
  return HOSTWAIT_CAI_OK;
}

int check_fields(const hostwait_cai_field* fields, uint64_t count, uint64_t itemsize,
                 const error_sink& sink) {
  uint64_t sum = 0;
  for (uint64_t i = 0; i < count; ++i) {
    const int32_t index = i < INT32_MAX ? static_cast<int32_t>(i) : INT32_MAX;
    parts p{};
    uint64_t bytes = 0;
    if (fields[i].typestr == nullptr || !split(fields[i].typestr, fields[i].typestr_len, &p) ||
        p.kind == 't') {
      return fail(sink, HOSTWAIT_CAI_ERR_DESCR, "descr", index, "a field has no valid type string");
    }
    if (!item_bytes(p, &bytes) || __builtin_mul_overflow(bytes, fields[i].count, &bytes) ||
        __builtin_add_overflow(sum, bytes, &sum)) {
      return fail(sink, HOSTWAIT_CAI_ERR_DESCR_SIZE, "descr", index, "the fields' size overflows");
    }
  }
  if (sum != itemsize) {
    return fail(sink, HOSTWAIT_CAI_ERR_DESCR_SIZE, "descr", -1,
                "the fields have %llu bytes, the type string %llu",
                static_cast<unsigned long long>(sum), static_cast<unsigned long long>(itemsize));
  }
  return HOSTWAIT_CAI_OK;
}

}  // namespace hostwait::cai
