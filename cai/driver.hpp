// SPDX-License-Identifier: Apache-2.0
// Copyright The hostwait authors
// The driver's functions: found at run time, or injected.
#pragma once

#include <atomic>

#include "error.hpp"

namespace hostwait::cai {

// Numbers of the driver interface that are used here; cuda.h is not needed to build this library.
enum : int {
  cu_success = 0,
  cu_invalid_context = 201,
  cu_invalid_handle = 400,
  cu_not_ready = 600,
  cu_capture_invalidated = 901,
  cu_capture_implicit = 906,
  cu_attribute_context = 1,
  cu_attribute_memory_type = 2,
  cu_attribute_device_pointer = 3,
  cu_attribute_is_managed = 8,
  cu_attribute_device_ordinal = 9,
  cu_attribute_range_start = 11,
  cu_attribute_range_size = 12,
  cu_memory_host = 1,
  cu_device_pageable_memory_access = 88,
  cu_capture_none = 0,
  cu_capture_active = 1,
  cu_capture_mode_relaxed = 2,
};
enum : unsigned {
  cu_stream_non_blocking = 1,
  cu_event_blocking_sync = 1,
  cu_event_disable_timing = 2,
  cu_wait_external = 1,
};

// The table, loaded if need be; else ERR_NO_DRIVER or ERR_FORKED.
int require_driver(const error_sink& sink, const hostwait_cai_driver** out);

// NULL until the first call that needs a driver, and in the child of a process that used one.
extern std::atomic<const hostwait_cai_driver*> current_driver;

// The table if it is loaded already.
inline const hostwait_cai_driver* loaded_driver() {
  return current_driver.load(std::memory_order_acquire);
}

inline void* handle(uint64_t value) {
  return reinterpret_cast<void*>(value);
}

template <typename T>
uint64_t value(T* handle) {
  return reinterpret_cast<uint64_t>(handle);
}

}  // namespace hostwait::cai
