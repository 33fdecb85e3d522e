// SPDX-License-Identifier: Apache-2.0
// Copyright The hostwait authors
// Events: what a record stands for, waits of host and streams, and their errors.
#include "sim_test.hpp"

using namespace sim_test;

TEST_CASE("an event that was never recorded is complete") {
  own_context context;
  CUevent e = new_event();
  CHECK(cuEventQuery(e) == CUDA_SUCCESS);
  SIM_OK(cuEventSynchronize(e));
  float ms;
  CHECK(cuEventElapsedTime(&ms, e, e) == CUDA_ERROR_INVALID_HANDLE);
}

TEST_CASE("a record covers the work before it and nothing after it") {
  own_context context;
  CUstream s = new_stream();
  CUevent e = new_event();
  SIM_OK(cuEventRecord(e, s));
  SIM_OK(hostwait_sim_hold(s));
  CHECK(cuEventQuery(e) == CUDA_SUCCESS);
  SIM_OK(cuEventRecord(e, s));
  CHECK(cuEventQuery(e) == CUDA_ERROR_NOT_READY);
  float ms;
  CHECK(cuEventElapsedTime(&ms, e, e) == CUDA_ERROR_NOT_READY);
  CHECK(host_stops_in([&] { SIM_OK(cuEventSynchronize(e)); }));
  CHECK(cuEventQuery(e) == CUDA_SUCCESS);
}

TEST_CASE("a stream waits for another one's event, the host does not") {
  own_context context;
  CUstream first = new_stream(), second = new_stream();
  CUevent e = new_event(CU_EVENT_DISABLE_TIMING);
  SIM_OK(hostwait_sim_hold(first));
  CHECK_FALSE(host_stops_in([&] {
    SIM_OK(cuEventRecord(e, first));
    SIM_OK(cuStreamWaitEvent(second, e, 0));
  }));
  CHECK(cuStreamQuery(second) == CUDA_ERROR_NOT_READY);
  SIM_OK(cuEventDestroy(e));
  CHECK(cuEventQuery(e) == CUDA_ERROR_INVALID_HANDLE);
  hostwait_sim_release(first);
  SIM_OK(cuStreamSynchronize(second));
}

TEST_CASE("the wait is for the record at the call, not for a later one") {
  own_context context;
  CUstream first = new_stream(), second = new_stream();
  CUevent e = new_event();
  SIM_OK(cuEventRecord(e, first));
  SIM_OK(cuStreamWaitEvent(second, e, 0));
  SIM_OK(hostwait_sim_hold(first));
  SIM_OK(cuEventRecord(e, first));
  CHECK_FALSE(host_stops_in([&] { SIM_OK(cuStreamSynchronize(second)); }));
}

TEST_CASE("an event on the legacy stream stands for the blocking streams too") {
  own_context context;
  CUstream blocking = new_stream(CU_STREAM_DEFAULT);
  CUevent e = new_event();
  CHECK(host_stops_behind(blocking, [&] {
    SIM_OK(cuEventRecord(e, nullptr));
    SIM_OK(cuEventSynchronize(e));
  }));
}

TEST_CASE("events without timing have no elapsed time, unknown flags are refused") {
  own_context context;
  CUevent e = new_event(CU_EVENT_DISABLE_TIMING);
  SIM_OK(cuEventRecord(e, nullptr));
  float ms;
  CHECK(cuEventElapsedTime(&ms, e, e) == CUDA_ERROR_INVALID_HANDLE);
  CHECK(cuEventCreate(&e, 0x100) == CUDA_ERROR_INVALID_VALUE);
  CHECK(cuEventRecord(nullptr, nullptr) == CUDA_ERROR_INVALID_HANDLE);
}

TEST_CASE("an event over a whole context") {
  own_context context;
  CUstream s = new_stream(), other = new_stream();
  CUevent e = new_event();
  SIM_OK(hostwait_sim_hold(s));
  SIM_OK(cuCtxRecordEvent(context.context, e));
  CHECK(cuEventQuery(e) == CUDA_ERROR_NOT_READY);
  SIM_OK(cuCtxWaitEvent(context.context, e));
  CHECK(cuStreamQuery(other) == CUDA_ERROR_NOT_READY);
  CHECK(host_stops_in([&] { SIM_OK(cuEventSynchronize(e)); }));
}
