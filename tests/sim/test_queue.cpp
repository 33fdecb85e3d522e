// SPDX-License-Identifier: Apache-2.0
// Copyright The hostwait authors
// The launch queue and the staging of pageable memory, with the numbers that were measured.
#include <cstring>
#include <vector>

#include "sim_test.hpp"

using namespace sim_test;

namespace {

// How many calls behind one busy kernel return before the host is stopped, counted from 1.
int first_that_stops(CUstream s, const std::function<void()>& call) {
  SIM_OK(hostwait_sim_hold(s));
  int number = 0;
  bool stopped = false;
  while (!stopped && number < 3000) {
    stopped = host_stops_in([&] { call(); });
    ++number;
  }
  hostwait_sim_release_all();
  SIM_OK(cuStreamSynchronize(s));
  return number;
}

CUfunction tiny() {
  CUmodule module = nullptr;
  CUfunction function = nullptr;
  SIM_OK(cuModuleLoadData(&module,
                          "\x7f"
                          "ELF"));
  SIM_OK(cuModuleGetFunction(&function, module, "tiny"));
  return function;
}

}  // namespace

TEST_CASE("the 1022nd launch behind a busy kernel waits") {
  own_context context;
  CUstream s = new_stream();
  CUfunction f = tiny();
  CHECK(first_that_stops(s, [&] {
          SIM_OK(cuLaunchKernel(f, 1, 1, 1, 1, 1, 1, 0, s, nullptr, nullptr));
        }) == 1022);
}

TEST_CASE("event records share the queue with launches") {
  own_context context;
  CUstream s = new_stream();
  CUfunction f = tiny();
  CUevent e = new_event();
  CHECK(first_that_stops(s, [&] {
          SIM_OK(cuLaunchKernel(f, 1, 1, 1, 1, 1, 1, 0, s, nullptr, nullptr));
          SIM_OK(cuEventRecord(e, s));
        }) == 511);
}

TEST_CASE("small pageable copies travel in the queue") {
  own_context context;
  CUstream s = new_stream();
  CUdeviceptr d = new_memory(1 << 20);
  std::vector<char> host(1 << 20);
  auto copies_until_stop = [&](size_t bytes) {
    return first_that_stops(s, [&] { SIM_OK(cuMemcpyHtoDAsync(d, host.data(), bytes, s)); });
  };
  CHECK(copies_until_stop(64 << 10) == 63);
  CHECK(copies_until_stop(32 << 10) == 125);
  CHECK(copies_until_stop(1 << 10) == 1021);
  CHECK(copies_until_stop(4) == 1021);
}

TEST_CASE("above 64 KiB the third pageable copy waits") {
  own_context context;
  CUstream s = new_stream();
  CUdeviceptr d = new_memory(1 << 20);
  std::vector<char> host(1 << 20);
  for (size_t bytes : {size_t{65537}, size_t{262144}, size_t{1} << 20})
    CHECK(first_that_stops(s, [&] { SIM_OK(cuMemcpyHtoDAsync(d, host.data(), bytes, s)); }) == 3);
}

TEST_CASE("one pageable copy stages 2 MiB and not a byte more") {
  own_context context;
  CUstream s = new_stream();
  CUdeviceptr d = new_memory(4 << 20);
  std::vector<char> host(4 << 20);
  auto copy = [&](size_t bytes) {
    return [&, bytes] { SIM_OK(cuMemcpyHtoDAsync(d, host.data(), bytes, s)); };
  };
  CHECK_FALSE(host_stops_behind(s, copy(2097152)));
  SIM_OK(cuStreamSynchronize(s));
  CHECK(host_stops_behind(s, copy(2097153)));
}

TEST_CASE("a staged copy carries the bytes of the call, whatever happens to the source") {
  own_context context;
  CUstream s = new_stream();
  CUdeviceptr d = new_memory(1 << 17);
  for (size_t bytes : {size_t{16}, size_t{1} << 17}) {
    std::vector<char> host(bytes, 'x'), back(bytes);
    SIM_OK(hostwait_sim_hold(s));
    SIM_OK(cuMemcpyHtoDAsync(d, host.data(), bytes, s));
    memset(host.data(), 'y', bytes);
    hostwait_sim_release(s);
    SIM_OK(cuMemcpyDtoHAsync(back.data(), d, bytes, s));
    CHECK(back == std::vector<char>(bytes, 'x'));
  }
}

TEST_CASE("a full queue of one stream does not stop work of another") {
  own_context context;
  CUstream full = new_stream(), other = new_stream();
  CUfunction f = tiny();
  SIM_OK(hostwait_sim_hold(full));
  for (int i = 0; i < 1021; ++i)
    SIM_OK(cuLaunchKernel(f, 1, 1, 1, 1, 1, 1, 0, full, nullptr, nullptr));
  CHECK_FALSE(host_stops_in([&] {
    SIM_OK(cuLaunchKernel(f, 1, 1, 1, 1, 1, 1, 0, other, nullptr, nullptr));
    SIM_OK(cuStreamSynchronize(other));
  }));
}
