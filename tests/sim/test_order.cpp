// SPDX-License-Identifier: Apache-2.0
// Copyright The hostwait authors
// Order of work: inside a stream, between legacy and blocking streams, and of per-thread streams.
#include <atomic>
#include <cstring>
#include <thread>

#include "sim_test.hpp"

using namespace sim_test;

namespace {

uint64_t read64(CUdeviceptr at) {
  uint64_t value;
  memcpy(&value, reinterpret_cast<void*>(at), sizeof value);
  return value;
}

CUfunction kernel(const char* name) {
  CUmodule module = nullptr;
  CUfunction function = nullptr;
  SIM_OK(cuModuleLoadData(&module,
                          "\x7f"
                          "ELF"));
  SIM_OK(cuModuleGetFunction(&function, module, name));
  return function;
}

void store(CUfunction f, CUstream on, CUdeviceptr at, uint64_t value) {
  void* parameters[] = {&at, &value};
  SIM_OK(cuLaunchKernel(f, 1, 1, 1, 1, 1, 1, 0, on, parameters, nullptr));
}

}  // namespace

TEST_CASE("work of one stream is done in order, after the hold") {
  own_context context;
  CUstream s = new_stream();
  CUdeviceptr a = new_memory(64), b = new_memory(64);
  CUfunction store64 = kernel("_Z7store64Pmm");
  SIM_OK(cuMemsetD8(a, 0, 64));
  SIM_OK(cuMemsetD8(b, 0, 64));
  SIM_OK(hostwait_sim_hold(s));
  store(store64, s, a, 7);
  SIM_OK(cuMemcpyDtoDAsync(b, a, 8, s));
  store(store64, s, a, 8);
  CHECK(read64(a) == 0);
  CHECK(cuStreamQuery(s) == CUDA_ERROR_NOT_READY);
  hostwait_sim_release(s);
  SIM_OK(cuStreamSynchronize(s));
  CHECK(read64(a) == 8);
  CHECK(read64(b) == 7);
  CHECK(cuStreamQuery(s) == CUDA_SUCCESS);
}

TEST_CASE("a pinned destination gets its bytes in stream order only") {
  own_context context;
  CUstream s = new_stream();
  CUdeviceptr d = new_memory(8);
  char* pinned;
  SIM_OK(cuMemHostAlloc(reinterpret_cast<void**>(&pinned), 8, 0));
  memcpy(pinned, "before!", 8);
  SIM_OK(cuMemcpyHtoD(d, "after!!", 8));
  SIM_OK(hostwait_sim_hold(s));
  SIM_OK(cuMemcpyDtoHAsync(pinned, d, 8, s));
  CHECK(!strcmp(pinned, "before!"));
  hostwait_sim_release(s);
  SIM_OK(cuStreamSynchronize(s));
  CHECK(!strcmp(pinned, "after!!"));
}

TEST_CASE("legacy and blocking streams wait for each other, non-blocking ones for nobody") {
  own_context context;
  CUstream blocking = new_stream(CU_STREAM_DEFAULT), other = new_stream(CU_STREAM_DEFAULT);
  CUstream free_one = new_stream();
  CUdeviceptr at = new_memory(64);
  CUfunction store64 = kernel("store64");
  SIM_OK(cuMemsetD8(at, 0, 64));

  SECTION("legacy work follows blocking work") {
    SIM_OK(hostwait_sim_hold(blocking));
    store(store64, nullptr, at, 1);
    store(store64, free_one, at + 8, 2);
    SIM_OK(cuStreamSynchronize(free_one));
    CHECK(read64(at) == 0);
    CHECK(read64(at + 8) == 2);
    CHECK(cuStreamQuery(CU_STREAM_LEGACY) == CUDA_ERROR_NOT_READY);
    hostwait_sim_release(blocking);
    SIM_OK(cuStreamSynchronize(nullptr));
    CHECK(read64(at) == 1);
  }
  SECTION("blocking work follows legacy work, also through a per-thread stream") {
    SIM_OK(hostwait_sim_hold(nullptr));
    store(store64, other, at, 1);
    store(store64, CU_STREAM_PER_THREAD, at + 8, 2);
    CHECK(read64(at) == 0);
    CHECK(read64(at + 8) == 0);
    CHECK(cuStreamQuery(other) == CUDA_ERROR_NOT_READY);
    hostwait_sim_release(nullptr);
    SIM_OK(cuStreamSynchronize(other));
    SIM_OK(cuStreamSynchronize(CU_STREAM_PER_THREAD));
    CHECK(read64(at) == 1);
    CHECK(read64(at + 8) == 2);
  }
  SECTION("two blocking streams are independent") {
    SIM_OK(hostwait_sim_hold(blocking));
    CHECK_FALSE(host_stops_in([&] {
      store(store64, other, at, 3);
      SIM_OK(cuStreamSynchronize(other));
    }));
    CHECK(read64(at) == 3);
  }
}

TEST_CASE("each thread has its own per-thread stream") {
  own_context context;
  SIM_OK(hostwait_sim_hold(CU_STREAM_PER_THREAD));
  std::atomic<int> answer{-1};
  std::thread([&] {
    cuCtxSetCurrent(context.context);
    answer = cuStreamQuery(CU_STREAM_PER_THREAD);
  }).join();
  CHECK(answer == CUDA_SUCCESS);
  CHECK(cuStreamQuery(CU_STREAM_PER_THREAD) == CUDA_ERROR_NOT_READY);
}

TEST_CASE("host functions run in order, off the calling thread, and may not call the driver") {
  own_context context;
  CUstream s = new_stream();
  struct seen {
    std::thread::id thread;
    std::atomic<int> calls{0};
    CUresult inside = CUDA_SUCCESS;
  } seen;
  SIM_OK(hostwait_sim_hold(s));
  SIM_OK(cuLaunchHostFunc(
      s,
      [](void* user) {
        auto* to = static_cast<struct seen*>(user);
        to->thread = std::this_thread::get_id();
        to->inside = cuCtxSynchronize();
        ++to->calls;
      },
      &seen));
  CHECK(seen.calls == 0);
  hostwait_sim_release(s);
  SIM_OK(cuStreamSynchronize(s));
  CHECK(seen.calls == 1);
  CHECK(seen.thread != std::this_thread::get_id());
  CHECK(seen.inside == CUDA_ERROR_NOT_PERMITTED);
}

TEST_CASE("a stream waits for a value in memory") {
  own_context context;
  CUstream waiting = new_stream(), writing = new_stream();
  CUdeviceptr flag = new_memory(8), at = new_memory(8);
  CUfunction store64 = kernel("store64");
  SIM_OK(cuMemsetD32(flag, 0, 2));
  SIM_OK(cuMemsetD32(at, 0, 2));
  SIM_OK(cuStreamWaitValue32(waiting, flag, 5, CU_STREAM_WAIT_VALUE_EQ));
  store(store64, waiting, at, 9);
  CHECK(cuStreamQuery(waiting) == CUDA_ERROR_NOT_READY);
  CHECK(read64(at) == 0);
  SIM_OK(cuStreamWriteValue32(writing, flag, 5, 0));
  SIM_OK(cuStreamSynchronize(waiting));
  CHECK(read64(at) == 9);
}

TEST_CASE("spin keeps its stream busy for the time of its parameter") {
  own_context context;
  CUstream s = new_stream();
  uint64_t ns = 20'000'000;
  size_t size = sizeof ns;
  void* extra[] = {CU_LAUNCH_PARAM_BUFFER_POINTER, &ns, CU_LAUNCH_PARAM_BUFFER_SIZE, &size,
                   CU_LAUNCH_PARAM_END};
  CUevent begin = new_event(), end = new_event();
  SIM_OK(cuEventRecord(begin, s));
  SIM_OK(cuLaunchKernel(kernel("spin"), 1, 1, 1, 1, 1, 1, 0, s, nullptr, extra));
  SIM_OK(cuEventRecord(end, s));
  SIM_OK(cuEventSynchronize(end));
  float ms = 0;
  SIM_OK(cuEventElapsedTime(&ms, begin, end));
  CHECK(ms >= 20.0f);
}

TEST_CASE("a destroyed stream finishes its work, and the context still waits for it") {
  own_context context;
  CUstream s = new_stream();
  CUdeviceptr at = new_memory(8);
  SIM_OK(cuMemsetD32(at, 0, 2));
  CUfunction store64 = kernel("store64");
  SIM_OK(hostwait_sim_hold(s));
  store(store64, s, at, 4);
  SIM_OK(cuStreamDestroy(s));
  CHECK(cuStreamQuery(s) == CUDA_ERROR_INVALID_HANDLE);
  CHECK(host_stops_in([] { SIM_OK(cuCtxSynchronize()); }));
  CHECK(read64(at) == 4);
}
