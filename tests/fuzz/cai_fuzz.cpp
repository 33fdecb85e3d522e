// SPDX-License-Identifier: Apache-2.0
// Copyright The hostwait authors
// Hostile descriptors: whatever the validator accepts must be true in 128-bit arithmetic, and must
// be accepted again, unchanged, when it is exported and parsed.
#include <hostwait/cai.h>

#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

namespace {

using wide = __int128;

void require(bool condition) {
  if (!condition) abort();
}

// Bytes of the input as numbers; zeros after its end.
class source {
 public:
  source(const uint8_t* data, size_t size) : data_(data), size_(size) {}
  uint8_t byte() {
    if (size_ == 0) return 0;
    --size_;
    return *data_++;
  }
  uint64_t number() {
    // Mostly small and boundary values, sometimes any.
    const uint8_t kind = byte();
    if (kind < 128) return kind % 9;
    if (kind < 160) return uint64_t{1} << (kind % 64);
    if (kind < 176) return (uint64_t{1} << (kind % 64)) - 1;
    uint64_t n = 0;
    for (int i = 0; i < 8; ++i) n = n << 8 | byte();
    return n;
  }
  hostwait_cai_int integer() {
    hostwait_cai_int i{};
    const uint8_t shape = byte();
    i.type = shape % 8 != 0 ? static_cast<uint8_t>(HOSTWAIT_CAI_T_INT)
                            : static_cast<uint8_t>(byte() % (HOSTWAIT_CAI_T_OTHER + 1));
    i.negative = shape % 16 == 9;
    i.wide = shape % 64 == 33;
    i.magnitude = number();
    return i;
  }
  uint8_t sequence_type() {
    const uint8_t b = byte();
    return b % 16 != 0 ? static_cast<uint8_t>(HOSTWAIT_CAI_T_TUPLE)
                       : static_cast<uint8_t>(b / 16 % (HOSTWAIT_CAI_T_OTHER + 1));
  }
  std::string typestr() {
    static const char* const known[] = {"<f4",  "|u1", "<c8", "<M8[ns]",
                                        "|V16", "<U3", "|t1", ">i2"};
    const uint8_t b = byte();
    if (b < 192) return known[b % 8];
    std::string text;
    for (int i = b % 24; i > 0; --i) text += static_cast<char>(byte());
    return text;
  }

 private:
  const uint8_t* data_;
  size_t size_;
};

struct descriptor {
  hostwait_cai_raw raw;
  std::string typestr;
  std::vector<hostwait_cai_int> shape, strides;
  std::vector<std::string> names;
  std::vector<hostwait_cai_field> fields;
};

void read(source& in, descriptor* d) {
  HOSTWAIT_CAI_INIT(d->raw);
  d->raw.container = in.byte() % 32 == 0 ? HOSTWAIT_CAI_T_MAPPING : HOSTWAIT_CAI_T_DICT;
  d->typestr = in.typestr();
  d->raw.typestr = d->typestr.data();
  d->raw.typestr_len = d->typestr.size();
  d->raw.typestr_type = HOSTWAIT_CAI_T_STR;
  const size_t ndim = in.byte() % 70 < 60 ? in.byte() % 5 : in.byte() % 70;
  for (size_t i = 0; i < ndim; ++i) d->shape.push_back(in.integer());
  d->raw.shape_type = in.sequence_type();
  d->raw.shape = d->shape.data();
  d->raw.shape_len = d->shape.size();
  if (in.byte() % 2) {
    for (size_t i = 0; i < ndim; ++i) d->strides.push_back(in.integer());
    if (in.byte() % 32 == 0) d->strides.push_back(in.integer());
    d->raw.strides_type = in.sequence_type();
    d->raw.strides = d->strides.data();
    d->raw.strides_len = d->strides.size();
  }
  d->raw.data_type = in.sequence_type();
  d->raw.data_len = 2;
  d->raw.data_ptr = in.integer();
  d->raw.data_readonly.type = HOSTWAIT_CAI_T_BOOL;
  d->raw.data_readonly.magnitude = in.byte() % 2;
  d->raw.version = in.byte() % 4 ? hostwait_cai_int_of(in.byte() % 4) : in.integer();
  if (in.byte() % 2) d->raw.stream = in.integer();
  if (in.byte() % 4 == 0) {
    for (int i = in.byte() % 4; i > 0; --i) d->names.push_back(in.typestr());
    for (const std::string& name : d->names) {
      d->fields.push_back({name.data(), name.size(), in.number()});
    }
    d->raw.descr_type = HOSTWAIT_CAI_T_LIST;
    d->raw.descr = d->fields.data();
    d->raw.descr_len = d->fields.size();
  }
}

// The same numbers again, in arithmetic that cannot overflow.
void check(const hostwait_cai_desc& d) {
  require(d.ndim <= HOSTWAIT_CAI_MAX_NDIM);
  wide count = 1, low = 0, high = static_cast<wide>(d.itemsize);
  bool empty = false;
  for (uint32_t i = 0; i < d.ndim; ++i) {
    require(d.shape[i] >= 0);
    empty |= d.shape[i] == 0;
  }
  for (uint32_t i = 0; i < d.ndim && !empty; ++i) {
    count *= d.shape[i];
    require(count * static_cast<wide>(d.itemsize) <= INT64_MAX);
    const wide reach = static_cast<wide>(d.shape[i] - 1) * d.strides[i];
    (reach < 0 ? low : high) += reach;
  }
  require(empty == ((d.flags & HOSTWAIT_CAI_F_EMPTY) != 0));
  int64_t lo = 1, hi = 1;
  require(hostwait_cai_extent(&d, &lo, &hi) == HOSTWAIT_CAI_OK && lo == d.lo && hi == d.hi);
  if (empty) {
    require(d.count == 0 && d.lo == 0 && d.hi == 0 && d.ptr == 0);
    return;
  }
  require(static_cast<wide>(d.count) == count && d.ptr != 0);
  if (d.kind != 't') {
    require(static_cast<wide>(d.nbytes) == count * static_cast<wide>(d.itemsize));
    require(d.lo == low && d.hi == high);
  }
  require(static_cast<wide>(d.ptr) + d.lo >= 0);
  require(static_cast<wide>(d.ptr) + d.hi <= static_cast<wide>(UINT64_MAX));
  if (!(d.flags & HOSTWAIT_CAI_F_OVERLAP)) require(high - low >= count * (d.itemsize != 0));
}

// What a producer would export for `d`.
void check_round_trip(const hostwait_cai_desc& d, const hostwait_cai_policy& policy) {
  char text[64];
  require(hostwait_cai_typestr(&d, text, sizeof text) > 0);
  std::vector<hostwait_cai_int> shape, strides;
  for (uint32_t i = 0; i < d.ndim; ++i) {
    shape.push_back(hostwait_cai_int_of(d.shape[i]));
    strides.push_back(hostwait_cai_int_of(d.strides[i]));
  }
  hostwait_cai_raw raw;
  HOSTWAIT_CAI_INIT(raw);
  raw.container = HOSTWAIT_CAI_T_DICT;
  raw.typestr = text;
  raw.typestr_len = strlen(text);
  raw.typestr_type = HOSTWAIT_CAI_T_STR;
  raw.shape_type = raw.strides_type = raw.data_type = HOSTWAIT_CAI_T_TUPLE;
  raw.shape = shape.data();
  raw.strides = strides.data();
  raw.shape_len = raw.strides_len = d.ndim;
  raw.data_len = 2;
  raw.data_ptr = hostwait_cai_uint_of(d.ptr);
  raw.data_readonly.type = HOSTWAIT_CAI_T_BOOL;
  raw.data_readonly.magnitude = d.readonly;
  raw.version = hostwait_cai_int_of(d.version);
  hostwait_cai_desc again;
  require(hostwait_cai_validate(&raw, &policy, &again, nullptr, nullptr) == HOSTWAIT_CAI_OK);
  require(again.kind == d.kind && again.itemsize == d.itemsize && again.byteorder == d.byteorder &&
          memcmp(again.unit, d.unit, sizeof d.unit) == 0 && again.ptr == d.ptr &&
          again.lo == d.lo && again.hi == d.hi && again.nbytes == d.nbytes);
}

struct dl_tensor {
  void* data;
  int32_t device_type, device_id, ndim;
  uint8_t code, bits;
  uint16_t lanes;
  int64_t* shape;
  int64_t* strides;
  uint64_t byte_offset;
};

void fuzz_dlpack(source& in, const hostwait_cai_policy& policy) {
  struct {
    uint32_t major, minor;
    void* context;
    void (*deleter)(void*);
    uint64_t flags;
    dl_tensor tensor;
  } managed{in.byte() % 8 ? 1u : 2u, in.byte() % 4u, nullptr, nullptr, in.byte() % 2u, {}};
  std::vector<int64_t> shape, strides;
  for (int i = in.byte() % 5; i > 0; --i) {
    shape.push_back(static_cast<int64_t>(in.number()));
    strides.push_back(static_cast<int64_t>(in.number()));
  }
  dl_tensor& t = managed.tensor;
  t.data = reinterpret_cast<void*>(in.number());
  t.device_type = in.byte() % 14;
  t.device_id = static_cast<int8_t>(in.byte());
  t.ndim = static_cast<int32_t>(shape.size());
  t.code = in.byte() % 10;
  t.bits = in.byte() % 4 ? 32 : in.byte();
  t.lanes = in.byte() % 8 ? 1 : in.byte();
  t.shape = shape.data();
  t.strides = in.byte() % 4 ? strides.data() : nullptr;
  t.byte_offset = in.number();
  hostwait_cai_desc d;
  hostwait_cai_loc loc;
  if (hostwait_cai_from_dlpack("dltensor_versioned", &managed, &policy, &d, &loc, nullptr) == 0) {
    check(d);
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  source in(data, size);
  hostwait_cai_policy policy;
  hostwait_cai_policy_init(&policy);
  policy.lenient = in.byte() % 4 ? HOSTWAIT_CAI_LENIENT_ALL : static_cast<uint32_t>(in.number());
  policy.options = in.byte() % 4 ? HOSTWAIT_CAI_ACCEPT_MASK | HOSTWAIT_CAI_ACCEPT_BIT_MASK |
                                       HOSTWAIT_CAI_ACCEPT_BYTEORDER | HOSTWAIT_CAI_ACCEPT_DTYPE
                                 : static_cast<uint32_t>(in.number());
  policy.intent = in.byte() % 4;
  if (in.byte() % 8 == 0) {
    fuzz_dlpack(in, policy);
    return 0;
  }
  descriptor outer, mask;
  read(in, &outer);
  if (in.byte() % 3 == 0) {
    read(in, &mask);
    if (in.byte() % 8 == 0) {
      mask.raw.mask = &mask.raw;  // a mask that is its own mask
      mask.raw.mask_type = HOSTWAIT_CAI_T_DICT;
    }
    outer.raw.mask = &mask.raw;
    outer.raw.mask_type = HOSTWAIT_CAI_T_DICT;
  }
  hostwait_cai_desc d, m;
  hostwait_cai_error err;
  HOSTWAIT_CAI_INIT(err);
  const int code = hostwait_cai_validate(&outer.raw, &policy, &d, &m, &err);
  require(err.code == code && (code == HOSTWAIT_CAI_OK) == (err.text[0] == '\0'));
  if (code != HOSTWAIT_CAI_OK) return 0;
  check(d);
  if (d.flags & HOSTWAIT_CAI_F_HAS_MASK) check(m);
  check_round_trip(d, policy);
  int64_t elements[HOSTWAIT_CAI_MAX_NDIM];
  hostwait_cai_element_strides(&d, elements, nullptr);
  return 0;
}
