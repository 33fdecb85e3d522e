// SPDX-License-Identifier: Apache-2.0
// Copyright The hostwait authors
// The exchange library on the simulated driver: streams, readiness, and drivers with one call taken
// away (mutants).
#pragma once

#include <cuda.h>
#include <hostwait/cai.h>

#include <chrono>
#include <cstring>
#include <thread>
#include <vector>

#include "sim/sim_test.hpp"

namespace cai_test {

using sim_test::new_memory;
using sim_test::new_stream;
using sim_test::own_context;

inline CUstream legacy_stream() {
  return CU_STREAM_LEGACY;
}
inline uint64_t value(const void* handle) {
  return reinterpret_cast<uint64_t>(handle);
}
inline hostwait_cai_stream named(CUstream stream) {
  return {value(stream)};
}

inline hostwait_cai_ready behind(CUstream stream, CUdeviceptr ptr = 0) {
  hostwait_cai_ready r;
  HOSTWAIT_CAI_INIT(r);
  r.kind = HOSTWAIT_CAI_READY_STREAM;
  r.stream = value(stream);
  r.device = -1;
  r.ptr = ptr;
  return r;
}

// Fails the test with the library's own words.
#define CAI_OK(call)                                                             \
  do {                                                                           \
    hostwait_cai_error err;                                                      \
    HOSTWAIT_CAI_INIT(err);                                                      \
    const int cai_code = (call);                                                 \
    INFO(#call << ": " << hostwait_cai_code_name(cai_code) << ": " << err.text); \
    REQUIRE(cai_code == HOSTWAIT_CAI_OK);                                        \
  } while (0)

// The driver's own functions as an injected table, for mutants.
inline hostwait_cai_driver whole_driver() {
  hostwait_cai_driver t;
  HOSTWAIT_CAI_INIT(t);
#define CAI_TAKE(member, function) \
  t.member = reinterpret_cast<decltype(t.member)>(reinterpret_cast<void*>(&function))
  CAI_TAKE(ctx_get_current, cuCtxGetCurrent);
  CAI_TAKE(ctx_push_current, cuCtxPushCurrent);
  CAI_TAKE(ctx_pop_current, cuCtxPopCurrent);
  t.ctx_get_device = [](int* device) { return static_cast<int>(cuCtxGetDevice(device)); };
  CAI_TAKE(ctx_get_id, cuCtxGetId);
  t.ctx_synchronize = [] { return static_cast<int>(cuCtxSynchronize()); };
  CAI_TAKE(primary_ctx_retain, cuDevicePrimaryCtxRetain);
  CAI_TAKE(stream_get_ctx, cuStreamGetCtx);
  CAI_TAKE(stream_get_flags, cuStreamGetFlags);
  CAI_TAKE(stream_query, cuStreamQuery);
  CAI_TAKE(stream_is_capturing, cuStreamIsCapturing);
  CAI_TAKE(stream_wait_event, cuStreamWaitEvent);
  CAI_TAKE(event_create, cuEventCreate);
  CAI_TAKE(event_destroy, cuEventDestroy);
  CAI_TAKE(event_record, cuEventRecord);
  CAI_TAKE(event_query, cuEventQuery);
  CAI_TAKE(event_synchronize, cuEventSynchronize);
  CAI_TAKE(pointer_get_attributes, cuPointerGetAttributes);
  CAI_TAKE(device_can_access_peer, cuDeviceCanAccessPeer);
  CAI_TAKE(device_get_attribute, cuDeviceGetAttribute);
  CAI_TAKE(thread_exchange_capture_mode, cuThreadExchangeStreamCaptureMode);
#undef CAI_TAKE
  return t;
}

// libcuda as the library finds it, again after every test.
struct driver_in_use {
  driver_in_use() { hostwait_cai_set_driver(nullptr); }
  explicit driver_in_use(const hostwait_cai_driver& table) { hostwait_cai_set_driver(&table); }
  ~driver_in_use() { hostwait_cai_set_driver(nullptr); }
};

// Gives a stream that nothing holds back the time to finish; returns at once when it has.
inline void settle(CUstream stream, std::chrono::milliseconds patience) {
  const auto end = std::chrono::steady_clock::now() + patience;
  while (cuStreamQuery(stream) == CUDA_ERROR_NOT_READY && std::chrono::steady_clock::now() < end) {
    std::this_thread::yield();
  }
}

inline hostwait_cai_stats stats() {
  hostwait_cai_stats s;
  HOSTWAIT_CAI_INIT(s);
  hostwait_cai_stats_get(&s);
  return s;
}

}  // namespace cai_test
