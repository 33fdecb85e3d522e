// SPDX-License-Identifier: Apache-2.0
// Copyright The hostwait authors
// Injected errors by environment and by call, counters, and the recorded sequence of calls.
#include <cstring>
#include <string>
#include <vector>

#include "sim_test.hpp"

using namespace sim_test;

// In a process of its own, with HOSTWAIT_SIM_FAIL=cuMemAlloc_v2=2@3,cuStreamQuery=700.
TEST_CASE("the environment fails one call once and another always", "[.environment]") {
  own_context context;
  CUdeviceptr d[4];
  CHECK(cuMemAlloc(&d[0], 16) == CUDA_SUCCESS);
  CHECK(cuMemAlloc(&d[1], 16) == CUDA_SUCCESS);
  CHECK(cuMemAlloc(&d[2], 16) == CUDA_ERROR_OUT_OF_MEMORY);
  CHECK(cuMemAlloc(&d[3], 16) == CUDA_SUCCESS);
  CHECK(cuStreamQuery(nullptr) == CUDA_ERROR_ILLEGAL_ADDRESS);
  CHECK(cuStreamQuery(nullptr) == CUDA_ERROR_ILLEGAL_ADDRESS);
  CHECK(hostwait_sim_fail("cuStreamQuery", 0, 0) == 0);
  CHECK(cuStreamQuery(nullptr) == CUDA_SUCCESS);
}

TEST_CASE("a failed call does nothing") {
  own_context context;
  CUdeviceptr d = new_memory(4);
  char host[4] = "abc";
  SIM_OK(cuMemsetD8(d, 'z', 4));
  CHECK(hostwait_sim_fail("cuMemcpyDtoH_v2", CUDA_ERROR_UNKNOWN, 1) == 0);
  CHECK(cuMemcpyDtoH(host, d, 4) == CUDA_ERROR_UNKNOWN);
  CHECK(!strcmp(host, "abc"));
  SIM_OK(cuMemcpyDtoH(host, d, 4));
  CHECK(host[0] == 'z');
  CHECK(hostwait_sim_fail("cuNoSuchCall", 1, 0) == -1);
}

TEST_CASE("calls are counted by exact symbol, waits only when the host was stopped") {
  own_context context;
  CUstream s = new_stream();
  hostwait_sim_reset_counts();
  for (int i = 0; i < 5; ++i) SIM_OK(cuStreamSynchronize(s));
  CHECK(hostwait_sim_calls("cuStreamSynchronize") == 5);
  CHECK(hostwait_sim_calls("cuStreamSynchronize_ptsz") == 0);
  CHECK(hostwait_sim_host_waits("cuStreamSynchronize") == 0);
  CHECK(host_stops_behind(s, [&] { SIM_OK(cuStreamSynchronize(s)); }));
  CHECK(hostwait_sim_calls("cuStreamSynchronize") == 6);
  CHECK(hostwait_sim_host_waits("cuStreamSynchronize") == 1);
  CHECK(hostwait_sim_calls("cuNoSuchCall") == UINT64_MAX);
}

TEST_CASE("the sequence of calls is recorded") {
  own_context context;
  CUevent e = new_event();
  hostwait_sim_record(1);
  SIM_OK(cuEventRecord(e, nullptr));
  SIM_OK(cuEventSynchronize(e));
  hostwait_sim_record(0);
  SIM_OK(cuCtxSynchronize());
  std::vector<std::string> names;
  for (size_t i = 0; i < hostwait_sim_recorded_count(); ++i)
    names.push_back(hostwait_sim_recorded(i));
  CHECK(names == std::vector<std::string>{"cuEventRecord", "cuEventSynchronize"});
  CHECK(hostwait_sim_recorded(2) == nullptr);
}

TEST_CASE("the fake copy speed keeps a stream busy") {
  own_context context;
  CUstream s = new_stream();
  CUdeviceptr a = new_memory(1 << 20), b = new_memory(1 << 20);
  hostwait_sim_set_copy_speed(100 << 20);
  CUevent begin = new_event(), end = new_event();
  SIM_OK(cuEventRecord(begin, s));
  SIM_OK(cuMemcpyDtoDAsync(a, b, 1 << 20, s));
  SIM_OK(cuEventRecord(end, s));
  SIM_OK(cuStreamSynchronize(s));
  hostwait_sim_set_copy_speed(0);
  float ms = 0;
  SIM_OK(cuEventElapsedTime(&ms, begin, end));
  CHECK(ms >= 10.0f);
}
