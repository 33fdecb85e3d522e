// SPDX-License-Identifier: Apache-2.0
// Copyright The hostwait authors
// Judges what was found in a __cuda_array_interface__ dict. Pure: no driver, no allocation.
#include <cstring>

#include "layout.hpp"
#include "policy.hpp"
#include "typestr.hpp"

namespace hostwait::cai {
namespace {

struct validation {
  const hostwait_cai_policy& policy;
  error_sink sink;
  hostwait_cai_desc* desc;

  bool lenient(uint32_t bit) {
    if (!(policy.lenient & bit)) return false;
    desc->flags |= HOSTWAIT_CAI_F_LENIENT;
    return true;
  }

  int wrong_type(const char* key, int32_t index, const char* wanted) {
    return fail(sink, HOSTWAIT_CAI_ERR_TYPE, key, index, "%s must be %s", key, wanted);
  }

  bool is_integer(const hostwait_cai_int& i) {
    return i.type == HOSTWAIT_CAI_T_INT || i.type == HOSTWAIT_CAI_T_INDEX ||
           (i.type == HOSTWAIT_CAI_T_BOOL && lenient(HOSTWAIT_CAI_LENIENT_BOOL));
  }

  int container(const hostwait_cai_raw& raw) {
    if (raw.container == HOSTWAIT_CAI_T_ABSENT || (raw.from_dict && !policy.from_dict)) {
      return fail(sink, HOSTWAIT_CAI_ERR_NOT_CAI, "", -1,
                  "the object has no __cuda_array_interface__");
    }
    if (raw.container == HOSTWAIT_CAI_T_DICT) return HOSTWAIT_CAI_OK;
    if (raw.container == HOSTWAIT_CAI_T_MAPPING && lenient(HOSTWAIT_CAI_LENIENT_MAPPING)) {
      return HOSTWAIT_CAI_OK;
    }
    return fail(sink, HOSTWAIT_CAI_ERR_NOT_DICT, "", -1, "__cuda_array_interface__ must be a dict");
  }

  int keys(const hostwait_cai_raw& raw) {
    const char* missing = nullptr;
    if (raw.shape_type == HOSTWAIT_CAI_T_ABSENT) missing = "shape";
    if (missing == nullptr && raw.typestr_type == HOSTWAIT_CAI_T_ABSENT) missing = "typestr";
    if (missing == nullptr && raw.data_type == HOSTWAIT_CAI_T_ABSENT) missing = "data";
    if (missing == nullptr && raw.version.type == HOSTWAIT_CAI_T_ABSENT &&
        !lenient(HOSTWAIT_CAI_LENIENT_VERSION)) {
      missing = "version";
    }
    if (missing == nullptr) return HOSTWAIT_CAI_OK;
    return fail(sink, HOSTWAIT_CAI_ERR_MISSING_KEY, missing, -1, "the key '%s' is missing",
                missing);
  }

  int version(const hostwait_cai_raw& raw) {
    const hostwait_cai_int& v = raw.version;
    if (v.type == HOSTWAIT_CAI_T_ABSENT) {
      desc->version = 0;
      return HOSTWAIT_CAI_OK;
    }
    if (!is_integer(v)) return wrong_type("version", -1, "an int");
    if (v.negative && (v.magnitude != 0 || v.wide)) {
      return fail(sink, HOSTWAIT_CAI_ERR_VERSION, "version", -1, "version must not be negative");
    }
    if ((v.wide || v.magnitude > 3) && !(policy.options & HOSTWAIT_CAI_ACCEPT_NEWER)) {
      return fail(sink, HOSTWAIT_CAI_ERR_VERSION_TOO_NEW, "version", -1,
                  "version is newer than 3, the newest known");
    }
    desc->version = v.wide || v.magnitude > INT32_MAX ? INT32_MAX : static_cast<int>(v.magnitude);
    return HOSTWAIT_CAI_OK;
  }

  int sequence(uint8_t type, const char* key) {
    if (type == HOSTWAIT_CAI_T_TUPLE) return HOSTWAIT_CAI_OK;
    if (type == HOSTWAIT_CAI_T_LIST && lenient(HOSTWAIT_CAI_LENIENT_LIST)) return HOSTWAIT_CAI_OK;
    return wrong_type(key, -1, "a tuple");
  }

  int entry(const hostwait_cai_int& value, const char* key, int32_t index, int64_t* out) {
    if (!is_integer(value)) return wrong_type(key, index, "a tuple of ints");
    const uint64_t limit = static_cast<uint64_t>(INT64_MAX) + (value.negative ? 1 : 0);
    if (value.wide || value.magnitude > limit) {
      return fail(sink, HOSTWAIT_CAI_ERR_OVERFLOW, key, index, "%s[%d] does not fit 64 bits", key,
                  static_cast<int>(index));
    }
    *out = static_cast<int64_t>(value.negative ? 0 - value.magnitude : value.magnitude);
    return HOSTWAIT_CAI_OK;
  }

  int shape(const hostwait_cai_raw& raw) {
    if (const int code = sequence(raw.shape_type, "shape")) return code;
    if (raw.shape_len > HOSTWAIT_CAI_MAX_NDIM) {
      return fail(sink, HOSTWAIT_CAI_ERR_NDIM, "shape", -1, "%llu dimensions, at most %d are known",
                  static_cast<unsigned long long>(raw.shape_len), HOSTWAIT_CAI_MAX_NDIM);
    }
    desc->ndim = static_cast<uint32_t>(raw.shape_len);
    for (uint32_t i = 0; i < desc->ndim; ++i) {
      const int32_t index = static_cast<int32_t>(i);
      const hostwait_cai_int& value = raw.shape[i];
      if (is_integer(value) && value.negative && (value.magnitude != 0 || value.wide)) {
        return fail(sink, HOSTWAIT_CAI_ERR_SHAPE_NEGATIVE, "shape", index, "shape[%d] is negative",
                    index);
      }
      if (const int code = entry(value, "shape", index, &desc->shape[i])) return code;
    }
    return HOSTWAIT_CAI_OK;
  }

  int typestr(const hostwait_cai_raw& raw, bool bits_allowed) {
    const bool text =
        raw.typestr_type == HOSTWAIT_CAI_T_STR ||
        (raw.typestr_type == HOSTWAIT_CAI_T_BYTES && lenient(HOSTWAIT_CAI_LENIENT_BYTES));
    if (!text) return wrong_type("typestr", -1, "a str");
    element_type type;
    if (const int code = parse_typestr(raw.typestr, raw.typestr_len, policy, bits_allowed,
                                       "typestr", -1, sink, &type)) {
      return code;
    }
    desc->kind = type.kind;
    desc->byteorder = type.byteorder;
    desc->itemsize = type.itemsize;
    memcpy(desc->unit, type.unit, sizeof desc->unit);
    if (type.lenient) desc->flags |= HOSTWAIT_CAI_F_LENIENT;
    if (type.kind == 't') {
      desc->flags |= HOSTWAIT_CAI_F_BITS;
      if (desc->ndim != 1) {
        return fail(sink, HOSTWAIT_CAI_ERR_MASK_SHAPE, "shape", -1, "bit masks are 1-D");
      }
    }
    if (raw.descr_type == HOSTWAIT_CAI_T_ABSENT || raw.descr_type == HOSTWAIT_CAI_T_NONE) {
      return HOSTWAIT_CAI_OK;
    }
    if (const int code = check_fields(raw.descr, raw.descr_len, desc->itemsize, sink)) return code;
    desc->flags |= HOSTWAIT_CAI_F_HAS_DESCR;
    return HOSTWAIT_CAI_OK;
  }

  int strides_and_layout(const hostwait_cai_raw& raw) {
    bool empty = false;
    for (uint32_t i = 0; i < desc->ndim; ++i) empty |= desc->shape[i] == 0;
    const bool implied =
        raw.strides_type == HOSTWAIT_CAI_T_ABSENT || raw.strides_type == HOSTWAIT_CAI_T_NONE;
    if (!implied) {
      if (const int code = sequence(raw.strides_type, "strides")) return code;
      if (raw.strides_len != desc->ndim) {
        return fail(sink, HOSTWAIT_CAI_ERR_STRIDES_RANK, "strides", -1,
                    "%llu strides for %u dimensions",
                    static_cast<unsigned long long>(raw.strides_len), desc->ndim);
      }
      for (uint32_t i = 0; i < desc->ndim && !empty; ++i) {
        if (const int code =
                entry(raw.strides[i], "strides", static_cast<int32_t>(i), &desc->strides[i])) {
          return code;
        }
      }
    }
    if (const int code = finish_layout(desc, implied || empty, sink)) return code;
    if (!implied) desc->flags &= ~static_cast<uint32_t>(HOSTWAIT_CAI_F_IMPLIED_STRIDES);
    if ((policy.intent & HOSTWAIT_CAI_WRITE) && (desc->flags & HOSTWAIT_CAI_F_OVERLAP)) {
      return fail(sink, HOSTWAIT_CAI_ERR_OVERLAP, "strides", -1,
                  "elements share memory and the array is to be written");
    }
    if ((policy.options & HOSTWAIT_CAI_REJECT_BYTE_STRIDES) &&
        (desc->flags & HOSTWAIT_CAI_F_BYTE_STRIDES)) {
      return fail(sink, HOSTWAIT_CAI_ERR_STRIDE_NOT_MULTIPLE, "strides", -1,
                  "a stride is no multiple of the item size");
    }
    return HOSTWAIT_CAI_OK;
  }

  int pointer(const hostwait_cai_int& p) {
    const bool empty = desc->flags & HOSTWAIT_CAI_F_EMPTY;
    if (p.type == HOSTWAIT_CAI_T_NONE) {
      if (!empty) {
        return fail(sink, HOSTWAIT_CAI_ERR_NULL_DATA, "data", 0, "no pointer, but elements");
      }
      if (!lenient(HOSTWAIT_CAI_LENIENT_NONE_POINTER)) return wrong_type("data", 0, "an int");
      return HOSTWAIT_CAI_OK;
    }
    if (!is_integer(p)) return wrong_type("data", 0, "an int");
    if (p.wide || (p.negative && p.magnitude != 0)) {
      return fail(sink, HOSTWAIT_CAI_ERR_POINTER_RANGE, "data", 0, "the pointer is no address");
    }
    if (empty) return HOSTWAIT_CAI_OK;  // normalised to 0
    desc->ptr = p.magnitude;
    if (desc->ptr == 0) {
      return fail(sink, HOSTWAIT_CAI_ERR_NULL_DATA, "data", 0, "a null pointer, but elements");
    }
    // [ptr + lo, ptr + hi) must lie inside the address space.
    const uint64_t below = 0 - static_cast<uint64_t>(desc->lo);
    uint64_t end = 0;
    if (below > desc->ptr ||
        __builtin_add_overflow(desc->ptr, static_cast<uint64_t>(desc->hi), &end)) {
      return fail(sink, HOSTWAIT_CAI_ERR_POINTER_RANGE, "data", 0,
                  "the array leaves the address space");
    }
    return HOSTWAIT_CAI_OK;
  }

  int data(const hostwait_cai_raw& raw) {
    if (const int code = sequence(raw.data_type, "data")) return code;
    if (raw.data_len != 2) {
      return fail(sink, HOSTWAIT_CAI_ERR_DATA_ARITY, "data", -1, "data has %llu entries, not 2",
                  static_cast<unsigned long long>(raw.data_len));
    }
    if (const int code = pointer(raw.data_ptr)) return code;
    const hostwait_cai_int& flag = raw.data_readonly;
    const bool number = flag.type == HOSTWAIT_CAI_T_INT || flag.type == HOSTWAIT_CAI_T_INDEX;
    if (flag.type != HOSTWAIT_CAI_T_BOOL && !(number && lenient(HOSTWAIT_CAI_LENIENT_BOOL))) {
      return wrong_type("data", 1, "a bool");
    }
    desc->readonly = flag.magnitude != 0 || flag.wide;
    if (desc->readonly && (policy.intent & HOSTWAIT_CAI_WRITE) &&
        !(policy.options & HOSTWAIT_CAI_IGNORE_READONLY)) {
      return fail(sink, HOSTWAIT_CAI_ERR_READONLY, "data", 1,
                  "the array is read-only and is to be written");
    }
    const uint64_t whole = desc->kind == 'c' ? desc->itemsize / 2 : desc->itemsize;
    const bool bytes = desc->kind == 'S' || desc->kind == 'V' || desc->kind == 't';
    const uint64_t alignment = bytes ? 1 : desc->kind == 'U' ? 4 : whole & (0 - whole);
    if (desc->ptr % alignment != 0) {
      desc->flags |= HOSTWAIT_CAI_F_UNALIGNED;
      if (policy.options & HOSTWAIT_CAI_REJECT_UNALIGNED) {
        return fail(sink, HOSTWAIT_CAI_ERR_ALIGNMENT, "data", 0,
                    "the pointer is no multiple of %llu",
                    static_cast<unsigned long long>(alignment));
      }
    }
    return HOSTWAIT_CAI_OK;
  }

  int stream(const hostwait_cai_raw& raw) {
    const hostwait_cai_int& s = raw.stream;
    desc->stream_state = HOSTWAIT_CAI_STREAM_ABSENT;
    if (s.type == HOSTWAIT_CAI_T_ABSENT) return HOSTWAIT_CAI_OK;
    desc->stream_state = HOSTWAIT_CAI_STREAM_NONE;
    if (s.type == HOSTWAIT_CAI_T_NONE) return HOSTWAIT_CAI_OK;
    if (s.type != HOSTWAIT_CAI_T_INT && s.type != HOSTWAIT_CAI_T_INDEX &&
        !(s.type == HOSTWAIT_CAI_T_CUDA_STREAM && lenient(HOSTWAIT_CAI_LENIENT_CUDA_STREAM))) {
      return wrong_type("stream", -1, "None or an int");
    }
    if (s.wide || (s.negative && s.magnitude != 0)) {
      return fail(sink, HOSTWAIT_CAI_ERR_STREAM_RANGE, "stream", -1, "stream is no handle");
    }
    desc->stream_state = HOSTWAIT_CAI_STREAM_VALUE;
    desc->stream = s.magnitude;
    if (desc->stream == 0) {
      if (!lenient(HOSTWAIT_CAI_LENIENT_STREAM_ZERO)) {
        return fail(sink, HOSTWAIT_CAI_ERR_STREAM_ZERO, "stream", -1,
                    "stream 0 is ambiguous: 1 is the legacy, 2 the per-thread default stream");
      }
      desc->stream = HOSTWAIT_CAI_LEGACY;
      desc->flags |= HOSTWAIT_CAI_F_STREAM_WAS_ZERO;
    }
    if ((policy.options & HOSTWAIT_CAI_CHECK_HANDLES) && desc->stream > HOSTWAIT_CAI_PER_THREAD &&
        desc->stream < 4096) {
      return fail(sink, HOSTWAIT_CAI_ERR_STREAM_RANGE, "stream", -1, "%llu is no plausible handle",
                  static_cast<unsigned long long>(desc->stream));
    }
    return HOSTWAIT_CAI_OK;
  }

  int all(const hostwait_cai_raw& raw, bool bits_allowed) {
    if (const int code = container(raw)) return code;
    if (const int code = keys(raw)) return code;
    if (const int code = version(raw)) return code;
    if (const int code = shape(raw)) return code;
    if (const int code = typestr(raw, bits_allowed)) return code;
    if (const int code = strides_and_layout(raw)) return code;
    if (const int code = data(raw)) return code;
    if (const int code = stream(raw)) return code;
    if (raw.unknown_keys > 0) desc->flags |= HOSTWAIT_CAI_F_UNKNOWN_KEYS;
    return HOSTWAIT_CAI_OK;
  }
};

bool broadcasts(const hostwait_cai_desc& mask, const hostwait_cai_desc& data) {
  if (mask.ndim > data.ndim) return false;
  for (uint32_t i = 0; i < mask.ndim; ++i) {
    const int64_t extent = mask.shape[mask.ndim - 1 - i];
    if (extent != 1 && extent != data.shape[data.ndim - 1 - i]) return false;
  }
  return true;
}

int validate_mask(const hostwait_cai_raw& raw, const hostwait_cai_policy& policy, error_sink sink,
                  hostwait_cai_desc* desc, hostwait_cai_desc* mask) {
  sink.in_mask = true;
  if (!(policy.options & (HOSTWAIT_CAI_ACCEPT_MASK | HOSTWAIT_CAI_ACCEPT_BIT_MASK)) ||
      mask == nullptr) {
    return fail(sink, HOSTWAIT_CAI_ERR_MASK_UNSUPPORTED, "mask", -1,
                "the array has a mask, which the consumer does not handle");
  }
  if (desc->version == 0) {
    return fail(sink, HOSTWAIT_CAI_ERR_VERSION, "mask", -1, "version 0 has no masks");
  }
  if ((raw.mask_type != HOSTWAIT_CAI_T_DICT && raw.mask_type != HOSTWAIT_CAI_T_MAPPING) ||
      raw.mask == nullptr) {
    return fail(sink, HOSTWAIT_CAI_ERR_MASK_TYPE, "mask", -1,
                "mask must be None or an object with __cuda_array_interface__");
  }
  if (raw.mask->mask_type != HOSTWAIT_CAI_T_ABSENT && raw.mask->mask_type != HOSTWAIT_CAI_T_NONE) {
    return fail(sink, HOSTWAIT_CAI_ERR_MASK_NESTED, "mask", -1, "the mask has a mask");
  }
  hostwait_cai_policy reading = policy;
  reading.intent = HOSTWAIT_CAI_READ;
  validation inner{reading, sink, mask};
  if (const int code = inner.all(*raw.mask, policy.options & HOSTWAIT_CAI_ACCEPT_BIT_MASK)) {
    return code;
  }
  if (!broadcasts(*mask, *desc)) {
    return fail(sink, HOSTWAIT_CAI_ERR_MASK_SHAPE, "mask", -1,
                "the mask's shape does not broadcast to the array's");
  }
  desc->flags |= HOSTWAIT_CAI_F_HAS_MASK;
  return HOSTWAIT_CAI_OK;
}

}  // namespace
}  // namespace hostwait::cai

using namespace hostwait::cai;

int hostwait_cai_validate(const hostwait_cai_raw* raw, const hostwait_cai_policy* given,
                          hostwait_cai_desc* desc, hostwait_cai_desc* mask,
                          hostwait_cai_error* err) {
  clear(err);
  const error_sink sink{err};
  if (raw == nullptr || desc == nullptr || raw->size < sizeof *raw) {
    return fail(sink, HOSTWAIT_CAI_ERR_INVALID, "", -1, "bad arguments");
  }
  HOSTWAIT_CAI_INIT(*desc);
  if (mask != nullptr) HOSTWAIT_CAI_INIT(*mask);
  hostwait_cai_policy room;
  const hostwait_cai_policy& policy = policy_in_force(given, &room);
  validation outer{policy, sink, desc};
  if (const int code = outer.all(*raw, false)) return code;
  if (raw->mask_type == HOSTWAIT_CAI_T_ABSENT || raw->mask_type == HOSTWAIT_CAI_T_NONE) {
    return HOSTWAIT_CAI_OK;
  }
  return validate_mask(*raw, policy, sink, desc, mask);
}
