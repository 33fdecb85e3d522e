// SPDX-License-Identifier: Apache-2.0
// Copyright The hostwait authors
// Where an array lives, and the pointer that a device can use.
#include "policy.hpp"
#include "session.hpp"

namespace hostwait::cai {
namespace {

struct pointer_facts {
  void* context = nullptr;
  unsigned memory_type = 0;
  void* device_pointer = nullptr;
  unsigned managed = 0;
  int ordinal = -1;
  void* range_start = nullptr;
  size_t range_size = 0;
};

int ask(session& s, uint64_t ptr, int device, pointer_facts* f) {
  int attributes[] = {cu_attribute_context,        cu_attribute_memory_type,
                      cu_attribute_device_pointer, cu_attribute_is_managed,
                      cu_attribute_device_ordinal, cu_attribute_range_start,
                      cu_attribute_range_size};
  void* results[] = {&f->context, &f->memory_type, &f->device_pointer, &f->managed,
                     &f->ordinal, &f->range_start, &f->range_size};
  return s.ask_pointer(sizeof attributes / sizeof *attributes, attributes, results, ptr, device);
}

int device_of(const session& s, uint64_t context, int* device) {
  *device = -1;
  if (context == 0) return cu_success;
  const in_context scope(s, context);
  if (scope.result() != cu_success) return scope.result();
  return s.driver->ctx_get_device(device);
}

// An empty array has no pointer: the device is the stream's, else the consumer's.
int resolve_empty(session& s, const hostwait_cai_desc& desc, const hostwait_cai_policy& policy,
                  hostwait_cai_loc* loc) {
  loc->kind = HOSTWAIT_CAI_MEM_NONE;
  if (desc.stream_state == HOSTWAIT_CAI_STREAM_VALUE && desc.stream > HOSTWAIT_CAI_PER_THREAD) {
    stream_ref stream{};
    if (const int code = s.name(desc.stream, 0, &stream)) return code;
    loc->context = stream.context;
    const int result = device_of(s, stream.context, &loc->device);
    return result == cu_success ? HOSTWAIT_CAI_OK
                                : driver_failure(s.sink, result, "cuCtxGetDevice");
  }
  if (policy.use_device >= 0) {
    loc->device = policy.use_device;
    return HOSTWAIT_CAI_OK;
  }
  loc->context = s.current();
  const int result = device_of(s, s.current(), &loc->device);
  return result == cu_success ? HOSTWAIT_CAI_OK : driver_failure(s.sink, result, "cuCtxGetDevice");
}

int classify(session& s, const pointer_facts& f, const hostwait_cai_policy& policy, int use_device,
             uint64_t ptr, hostwait_cai_loc* loc) {
  loc->device = f.ordinal;
  loc->context = value(f.context);
  loc->ptr = f.device_pointer != nullptr ? value(f.device_pointer) : ptr;
  if (f.managed != 0) {
    loc->kind = HOSTWAIT_CAI_MEM_MANAGED;
  } else if (f.memory_type == 0) {
    int reachable = 0;
    if (use_device >= 0) {
      s.driver->device_get_attribute(&reachable, cu_device_pageable_memory_access, use_device);
    }
    if (!(policy.options & HOSTWAIT_CAI_ACCEPT_PAGEABLE) || reachable == 0) {
      return fail(s.sink, HOSTWAIT_CAI_ERR_NOT_DEVICE, "data", 0,
                  "the pointer is pageable host memory");
    }
    loc->kind = HOSTWAIT_CAI_MEM_PAGEABLE;
    loc->device = use_device;
    loc->context = s.current();
    loc->ptr = ptr;
  } else if (f.memory_type == cu_memory_host) {
    if (f.device_pointer == nullptr) {
      return fail(s.sink, HOSTWAIT_CAI_ERR_NOT_DEVICE, "data", 0,
                  "the host memory is not mapped for devices");
    }
    loc->kind = HOSTWAIT_CAI_MEM_PINNED;
    if (use_device >= 0) loc->device = use_device;
    if (s.current() != 0) loc->context = s.current();
  } else {
    loc->kind = HOSTWAIT_CAI_MEM_DEVICE;
  }
  return HOSTWAIT_CAI_OK;
}

int check(session& s, const hostwait_cai_desc& desc, const pointer_facts& f,
          const hostwait_cai_policy& policy, int use_device, const hostwait_cai_loc& loc) {
  if (policy.device >= 0 && loc.device >= 0 && policy.device != loc.device) {
    return fail(s.sink, HOSTWAIT_CAI_ERR_DEVICE_MISMATCH, "data", 0,
                "the data are on device %d, not %d", loc.device, policy.device);
  }
  if ((policy.options & HOSTWAIT_CAI_CHECK_RANGE) && f.range_size != 0) {
    // The range is the allocation's, or the whole reservation's for mapped memory.
    const uint64_t begin = value(f.range_start);
    const uint64_t first = desc.ptr + static_cast<uint64_t>(desc.lo);
    const uint64_t last = desc.ptr + static_cast<uint64_t>(desc.hi);
    if (first < begin || last - begin > f.range_size) {
      return fail(s.sink, HOSTWAIT_CAI_ERR_OUT_OF_RANGE, "data", -1,
                  "the array leaves its allocation of %llu bytes",
                  static_cast<unsigned long long>(f.range_size));
    }
  }
  if ((policy.options & HOSTWAIT_CAI_CHECK_PEER) && loc.kind == HOSTWAIT_CAI_MEM_DEVICE &&
      use_device >= 0 && loc.device >= 0 && use_device != loc.device) {
    int can = 0;
    const int result = s.driver->device_can_access_peer(&can, use_device, loc.device);
    if (result != cu_success) return driver_failure(s.sink, result, "cuDeviceCanAccessPeer");
    if (can == 0) {
      return fail(s.sink, HOSTWAIT_CAI_ERR_NO_PEER, "data", 0,
                  "device %d cannot address the memory of device %d", use_device, loc.device);
    }
  }
  return HOSTWAIT_CAI_OK;
}

}  // namespace
}  // namespace hostwait::cai

using namespace hostwait::cai;

int hostwait_cai_resolve(const hostwait_cai_desc* desc, const hostwait_cai_policy* given,
                         hostwait_cai_loc* loc, hostwait_cai_error* err) {
  clear(err);
  if (desc == nullptr || loc == nullptr) {
    return fail({err}, HOSTWAIT_CAI_ERR_INVALID, "", -1, "bad arguments");
  }
  HOSTWAIT_CAI_INIT(*loc);
  loc->device = -1;
  session s;
  if (const int code = s.open(err)) return code;
  const hostwait_cai_policy policy = complete_policy(given);
  if (desc->flags & HOSTWAIT_CAI_F_EMPTY) return resolve_empty(s, *desc, policy, loc);

  pointer_facts facts;
  int result = ask(s, desc->ptr, policy.device, &facts);
  if (result != cu_success) return driver_failure(s.sink, result, "cuPointerGetAttributes");
  int use_device = policy.use_device;
  if (use_device < 0 && s.current() != 0) {
    result = s.driver->ctx_get_device(&use_device);
    if (result != cu_success) return driver_failure(s.sink, result, "cuCtxGetDevice");
  }
  if (const int code = classify(s, facts, policy, use_device, desc->ptr, loc)) return code;
  return check(s, *desc, facts, policy, use_device, *loc);
}

int hostwait_cai_check_mask(const hostwait_cai_loc* data, const hostwait_cai_loc* mask,
                            hostwait_cai_error* err) {
  clear(err);
  if (data == nullptr || mask == nullptr) {
    return fail({err}, HOSTWAIT_CAI_ERR_INVALID, "", -1, "bad arguments");
  }
  if (data->device == mask->device || data->device < 0 || mask->device < 0) return HOSTWAIT_CAI_OK;
  return fail({err}, HOSTWAIT_CAI_ERR_MASK_DEVICE, "mask", -1,
              "the mask is on device %d, the data on device %d", mask->device, data->device);
}

void hostwait_cai_ready_from(const hostwait_cai_desc* desc, const hostwait_cai_loc* loc,
                             void* producer, hostwait_cai_ready* ready) {
  HOSTWAIT_CAI_INIT(*ready);
  ready->device = loc != nullptr ? loc->device : -1;
  ready->context = loc != nullptr ? loc->context : 0;
  ready->ptr = desc->ptr;
  ready->producer = producer;
  if (desc->stream_state == HOSTWAIT_CAI_STREAM_VALUE) {
    ready->kind = HOSTWAIT_CAI_READY_STREAM;
    ready->stream = desc->stream;
  } else {
    ready->kind = desc->version >= 3 ? HOSTWAIT_CAI_READY_NOW : HOSTWAIT_CAI_READY_UNKNOWN;
  }
}

int hostwait_cai_prepare(hostwait_cai_error* err) {
  clear(err);
  session s;
  if (const int code = s.open(err)) return code;
  if (s.current() == 0) return HOSTWAIT_CAI_OK;
  const event_slot* slot = nullptr;
  return s.slot_for(s.current(), false, &slot);
}
