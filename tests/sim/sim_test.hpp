// SPDX-License-Identifier: Apache-2.0
// Copyright The hostwait authors
// What the simulated driver's tests share: a device's primary context, streams, and the question
// "is the host stopped in this call?", answered without any clock.
#pragma once

#include <cuda.h>

#include <atomic>
#include <functional>
#include <thread>

#include "hostwait_sim.h"
#include "support/catch.hpp"

namespace sim_test {

inline const char* result_name(CUresult result) {
  const char* name = nullptr;
  cuGetErrorName(result, &name);
  return name ? name : "?";
}

// Ends the test with the call and its result when that is not CUDA_SUCCESS.
#define SIM_OK(call)                                                                          \
  do {                                                                                        \
    auto sim_result = static_cast<CUresult>(call);                                            \
    if (sim_result != CUDA_SUCCESS) FAIL(#call << ": " << sim_test::result_name(sim_result)); \
  } while (0)

// A context of its own, so that each test starts with idle streams.
struct own_context {
  CUcontext context = nullptr;
  explicit own_context(int device = 0) {
    SIM_OK(cuInit(0));
    SIM_OK(cuCtxCreate(&context, nullptr, 0, device));
  }
  ~own_context() {
    hostwait_sim_release_all();
    cuCtxDestroy(context);
  }
  own_context(const own_context&) = delete;
  own_context& operator=(const own_context&) = delete;
};

inline CUstream new_stream(unsigned flags = CU_STREAM_NON_BLOCKING) {
  CUstream stream = nullptr;
  SIM_OK(cuStreamCreate(&stream, flags));
  return stream;
}

inline CUdeviceptr new_memory(size_t size) {
  CUdeviceptr at = 0;
  SIM_OK(cuMemAlloc(&at, size));
  return at;
}

inline CUevent new_event(unsigned flags = CU_EVENT_DEFAULT) {
  CUevent event = nullptr;
  SIM_OK(cuEventCreate(&event, flags));
  return event;
}

// Runs the call on this thread; when the host is stopped in it, releases all holds. True when it
// was stopped. Level-triggered: a stop cannot be missed, and nothing depends on speed.
inline bool host_stops_in(const std::function<void()>& call) {
  std::atomic<bool> returned{false};
  bool stopped = false;
  std::thread watcher([&] {
    while (!returned) {
      if (!hostwait_sim_await_waiting(1, 1)) continue;
      stopped = true;
      hostwait_sim_release_all();
      return;
    }
  });
  call();
  returned = true;
  watcher.join();
  return stopped;
}

// The same with one stream held first and released at the end.
inline bool host_stops_behind(CUstream busy, const std::function<void()>& call) {
  REQUIRE(hostwait_sim_hold(busy) == 0);
  bool stopped = host_stops_in(call);
  hostwait_sim_release_all();
  return stopped;
}

}  // namespace sim_test
