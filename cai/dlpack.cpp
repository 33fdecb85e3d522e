// SPDX-License-Identifier: Apache-2.0
// Copyright The hostwait authors
// DLPack: the stream argument, tensors as descriptions, the C exchange API.
#include <cstring>

#include "layout.hpp"
#include "policy.hpp"

namespace hostwait::cai {
namespace {

// Layouts of DLPack 1.x (github.com/dmlc/dlpack, include/dlpack/dlpack.h).
struct dl_version {
  uint32_t major, minor;
};
struct dl_tensor {
  void* data;
  int32_t device_type, device_id;
  int32_t ndim;
  uint8_t code, bits;
  uint16_t lanes;
  int64_t* shape;
  int64_t* strides;
  uint64_t byte_offset;
};
struct dl_managed {
  dl_tensor tensor;
  void* manager;
  void (*deleter)(dl_managed*);
};
struct dl_managed_versioned {
  dl_version version;
  void* manager;
  void (*deleter)(dl_managed_versioned*);
  uint64_t flags;
  dl_tensor tensor;
};
struct dl_exchange_header {
  dl_version version;
  const dl_exchange_header* previous;
};
struct dl_exchange {
  dl_exchange_header header;
  void* allocator;
  void* from_object;
  void* to_object;
  void* borrow_from_object;
  int (*current_work_stream)(int device_type, int32_t device_id, void** stream);
};

constexpr uint32_t known_major = 1;
constexpr uint64_t flag_read_only = 1;
enum dl_code : uint8_t { dl_int, dl_uint, dl_float, dl_opaque, dl_bfloat, dl_complex, dl_bool };

bool whole_bytes(uint8_t bits, unsigned least, unsigned most) {
  return bits >= least && bits <= most && (bits & (bits - 1)) == 0;
}

// CAI has no word for bfloat16 and float8: they pass as opaque bytes, which is how their NumPy
// types spell themselves.
bool kind_of(const dl_tensor& t, char* kind) {
  if (t.lanes != 1 || t.bits % 8 != 0 || t.bits == 0) return false;
  switch (t.code) {
    case dl_int:
      *kind = 'i';
      return whole_bytes(t.bits, 8, 64);
    case dl_uint:
      *kind = 'u';
      return whole_bytes(t.bits, 8, 64);
    case dl_float:
      *kind = 'f';
      return whole_bytes(t.bits, 16, 64);
    case dl_bfloat:
      *kind = 'V';
      return t.bits == 16;
    case dl_complex:
      *kind = 'c';
      return whole_bytes(t.bits, 64, 128);
    case dl_bool:
      *kind = 'b';
      return t.bits == 8;
    default:
      *kind = 'V';  // the float8 family
      return t.code > dl_bool && t.bits == 8;
  }
}

int place(const dl_tensor& t, hostwait_cai_loc* loc, const error_sink& sink) {
  loc->device = t.device_id;
  switch (t.device_type) {
    case HOSTWAIT_CAI_DL_CUDA:
      loc->kind = HOSTWAIT_CAI_MEM_DEVICE;
      break;
    case HOSTWAIT_CAI_DL_CUDA_HOST:
      loc->kind = HOSTWAIT_CAI_MEM_PINNED;
      break;
    case HOSTWAIT_CAI_DL_CUDA_MANAGED:
      loc->kind = HOSTWAIT_CAI_MEM_MANAGED;
      break;
    case HOSTWAIT_CAI_DL_CPU:
      return fail(sink, HOSTWAIT_CAI_ERR_NOT_DEVICE, "device", -1, "the tensor is on the CPU");
    default:
      return fail(sink, HOSTWAIT_CAI_ERR_DEVICE, "device", -1, "device type %d is not CUDA's",
                  static_cast<int>(t.device_type));
  }
  if (t.device_id < 0) {
    return fail(sink, HOSTWAIT_CAI_ERR_DEVICE, "device", -1, "device %d does not exist",
                static_cast<int>(t.device_id));
  }
  return HOSTWAIT_CAI_OK;
}

int describe(const dl_tensor& t, bool strides_required, bool readonly,
             const hostwait_cai_policy& policy, hostwait_cai_desc* d, hostwait_cai_loc* loc,
             const error_sink& sink) {
  if (const int code = place(t, loc, sink)) return code;
  if (!kind_of(t, &d->kind)) {
    return fail(sink, HOSTWAIT_CAI_ERR_UNSUPPORTED_DTYPE, "typestr", -1,
                "DLPack type (%d, %d bits, %d lanes) has no type string", t.code, t.bits, t.lanes);
  }
  d->version = 3;
  d->stream_state = HOSTWAIT_CAI_STREAM_NONE;
  d->itemsize = t.bits / 8;
  d->byteorder = d->itemsize == 1 || d->kind == 'V' ? '|' : '<';
  d->readonly = readonly;
  if (readonly && (policy.intent & HOSTWAIT_CAI_WRITE) &&
      !(policy.options & HOSTWAIT_CAI_IGNORE_READONLY)) {
    return fail(sink, HOSTWAIT_CAI_ERR_READONLY, "data", -1,
                "the tensor is read-only and is to be written");
  }
  if (t.ndim < 0 || t.ndim > HOSTWAIT_CAI_MAX_NDIM || (t.ndim > 0 && t.shape == nullptr)) {
    return fail(sink, HOSTWAIT_CAI_ERR_NDIM, "shape", -1, "%d dimensions", t.ndim);
  }
  d->ndim = static_cast<uint32_t>(t.ndim);
  bool empty = false;
  for (uint32_t i = 0; i < d->ndim; ++i) {
    d->shape[i] = t.shape[i];
    empty |= t.shape[i] == 0;
    if (t.shape[i] < 0) {
      return fail(sink, HOSTWAIT_CAI_ERR_SHAPE_NEGATIVE, "shape", static_cast<int32_t>(i),
                  "shape[%u] is negative", i);
    }
  }
  if (t.strides == nullptr && t.ndim > 1 && strides_required) {
    if (!(policy.lenient & HOSTWAIT_CAI_LENIENT_NULL_STRIDES)) {
      return fail(sink, HOSTWAIT_CAI_ERR_STRIDES_RANK, "strides", -1,
                  "no strides, which DLPack 1.2 and later require");
    }
    d->flags |= HOSTWAIT_CAI_F_LENIENT;
  }
  for (uint32_t i = 0; i < d->ndim && t.strides != nullptr && !empty; ++i) {
    if (__builtin_mul_overflow(t.strides[i], static_cast<int64_t>(d->itemsize), &d->strides[i])) {
      return fail(sink, HOSTWAIT_CAI_ERR_OVERFLOW, "strides", static_cast<int32_t>(i),
                  "strides[%u] in bytes does not fit 64 bits", i);
    }
  }
  if (const int code = finish_layout(d, t.strides == nullptr || empty, sink)) return code;
  if ((policy.intent & HOSTWAIT_CAI_WRITE) && (d->flags & HOSTWAIT_CAI_F_OVERLAP)) {
    return fail(sink, HOSTWAIT_CAI_ERR_OVERLAP, "strides", -1,
                "elements share memory and the tensor is to be written");
  }
  if (empty) return HOSTWAIT_CAI_OK;
  if (t.data == nullptr) {
    return fail(sink, HOSTWAIT_CAI_ERR_NULL_DATA, "data", -1, "a null pointer, but elements");
  }
  uint64_t end = 0;
  if (__builtin_add_overflow(reinterpret_cast<uint64_t>(t.data), t.byte_offset, &d->ptr) ||
      0 - static_cast<uint64_t>(d->lo) > d->ptr ||
      __builtin_add_overflow(d->ptr, static_cast<uint64_t>(d->hi), &end)) {
    return fail(sink, HOSTWAIT_CAI_ERR_POINTER_RANGE, "data", -1,
                "the tensor leaves the address space");
  }
  loc->ptr = d->ptr;
  return HOSTWAIT_CAI_OK;
}

}  // namespace
}  // namespace hostwait::cai

using namespace hostwait::cai;

int hostwait_cai_dlpack_stream(const hostwait_cai_int* given, int device_type, int target_device,
                               hostwait_cai_dl_action* action, uint64_t* stream,
                               hostwait_cai_error* err) {
  clear(err);
  const error_sink sink{err};
  if (action == nullptr || stream == nullptr) {
    return fail(sink, HOSTWAIT_CAI_ERR_INVALID, "", -1, "bad arguments");
  }
  *action = HOSTWAIT_CAI_DL_NO_SYNC;
  *stream = 0;
  const bool none = given == nullptr || given->type == HOSTWAIT_CAI_T_NONE;
  if (!none && given->type != HOSTWAIT_CAI_T_INT && given->type != HOSTWAIT_CAI_T_INDEX) {
    return fail(sink, HOSTWAIT_CAI_ERR_TYPE, "stream", -1, "stream must be None or an int");
  }
  if (device_type == HOSTWAIT_CAI_DL_CPU || target_device == HOSTWAIT_CAI_DL_CPU) {
    if (!none) {
      return fail(sink, HOSTWAIT_CAI_ERR_STREAM_CPU, "stream", -1,
                  "stream must be None for a tensor on the CPU");
    }
    if (device_type != HOSTWAIT_CAI_DL_CPU) *action = HOSTWAIT_CAI_DL_HOST;
    return HOSTWAIT_CAI_OK;
  }
  const bool rocm = device_type == HOSTWAIT_CAI_DL_ROCM || device_type == HOSTWAIT_CAI_DL_ROCM_HOST;
  if (none) {
    *action = HOSTWAIT_CAI_DL_WAIT;
    *stream = rocm ? 0 : HOSTWAIT_CAI_LEGACY;
    return HOSTWAIT_CAI_OK;
  }
  const bool negative = given->negative && given->magnitude != 0;
  if (negative && !given->wide && given->magnitude == 1) return HOSTWAIT_CAI_OK;
  const bool other_meaning = rocm && (given->magnitude == 1 || given->magnitude == 2);
  if (negative || given->wide || other_meaning) {
    return fail(sink, HOSTWAIT_CAI_ERR_STREAM_RANGE, "stream", -1,
                rocm ? "stream must be -1, 0 or a handle" : "stream must be -1, 1, 2 or a handle");
  }
  if (!rocm && given->magnitude == 0) {
    return fail(sink, HOSTWAIT_CAI_ERR_STREAM_ZERO, "stream", -1,
                "stream 0 is ambiguous: 1 is the legacy, 2 the per-thread default stream");
  }
  *action = HOSTWAIT_CAI_DL_WAIT;
  *stream = given->magnitude;
  return HOSTWAIT_CAI_OK;
}

int hostwait_cai_from_dlpack(const char* name, void* pointer, const hostwait_cai_policy* given,
                             hostwait_cai_desc* desc, hostwait_cai_loc* loc,
                             hostwait_cai_error* err) {
  clear(err);
  const error_sink sink{err};
  if (name == nullptr || desc == nullptr || loc == nullptr) {
    return fail(sink, HOSTWAIT_CAI_ERR_INVALID, "", -1, "bad arguments");
  }
  HOSTWAIT_CAI_INIT(*desc);
  HOSTWAIT_CAI_INIT(*loc);
  loc->device = -1;
  if (strncmp(name, "used_dltensor", 13) == 0) {
    return fail(sink, HOSTWAIT_CAI_ERR_CONSUMED, "", -1, "the capsule was consumed before");
  }
  if (pointer == nullptr) return fail(sink, HOSTWAIT_CAI_ERR_INVALID, "", -1, "an empty capsule");
  const hostwait_cai_policy policy = complete_policy(given);
  if (strcmp(name, "dltensor") == 0) {
    return describe(static_cast<dl_managed*>(pointer)->tensor, false, false, policy, desc, loc,
                    sink);
  }
  if (strcmp(name, "dltensor_versioned") != 0) {
    return fail(sink, HOSTWAIT_CAI_ERR_TYPE, "", -1, "the capsule holds no DLPack tensor");
  }
  auto* managed = static_cast<dl_managed_versioned*>(pointer);
  if (managed->version.major != known_major) {
    const unsigned major = managed->version.major;
    // Beyond the deleter the layout of another major version is unknown.
    if (managed->deleter != nullptr) managed->deleter(managed);
    return fail(sink, HOSTWAIT_CAI_ERR_VERSION, "version", -1, "DLPack %u is not known", major);
  }
  return describe(managed->tensor, managed->version.minor >= 2, managed->flags & flag_read_only,
                  policy, desc, loc, sink);
}

int hostwait_cai_dlpack_dtype(const hostwait_cai_desc* desc, uint8_t* code, uint8_t* bits,
                              uint16_t* lanes, hostwait_cai_error* err) {
  clear(err);
  const error_sink sink{err};
  if (desc == nullptr || code == nullptr || bits == nullptr || lanes == nullptr) {
    return fail(sink, HOSTWAIT_CAI_ERR_INVALID, "", -1, "bad arguments");
  }
  switch (desc->byteorder == '>' || desc->itemsize > 16 ? '\0' : desc->kind) {
    case 'i':
      *code = dl_int;
      break;
    case 'u':
      *code = dl_uint;
      break;
    case 'f':
      *code = dl_float;
      break;
    case 'c':
      *code = dl_complex;
      break;
    case 'b':
      *code = dl_bool;
      break;
    default:
      return fail(sink, HOSTWAIT_CAI_ERR_UNSUPPORTED_DTYPE, "typestr", -1,
                  "the type has no spelling in DLPack");
  }
  *bits = static_cast<uint8_t>(desc->itemsize * 8);
  *lanes = 1;
  return HOSTWAIT_CAI_OK;
}

const void* hostwait_cai_exchange_find(const void* api) {
  // A chain has one entry per major version; a longer one is a cycle.
  const auto* header = static_cast<const dl_exchange_header*>(api);
  for (int steps = 0; header != nullptr && steps < 64; ++steps, header = header->previous) {
    if (header->version.major == known_major) return header;
  }
  return nullptr;
}

int hostwait_cai_exchange_ready(const void* api, int device_type, int device_id,
                                hostwait_cai_ready* out, int* ambiguous, hostwait_cai_error* err) {
  clear(err);
  const error_sink sink{err};
  const auto* exchange = static_cast<const dl_exchange*>(hostwait_cai_exchange_find(api));
  if (out == nullptr || exchange == nullptr || exchange->current_work_stream == nullptr) {
    return fail(sink, HOSTWAIT_CAI_ERR_INVALID, "", -1, "no exchange API of a known version");
  }
  HOSTWAIT_CAI_INIT(*out);
  out->device = device_id;
  void* stream = nullptr;
  if (exchange->current_work_stream(device_type, device_id, &stream) != 0) {
    return fail(sink, HOSTWAIT_CAI_ERR_CALLBACK, "", -1, "current_work_stream failed");
  }
  if (ambiguous != nullptr) *ambiguous = stream == nullptr;
  out->kind = HOSTWAIT_CAI_READY_STREAM;
  out->stream = stream != nullptr ? reinterpret_cast<uint64_t>(stream) : HOSTWAIT_CAI_LEGACY;
  return HOSTWAIT_CAI_OK;
}
