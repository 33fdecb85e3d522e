// SPDX-License-Identifier: Apache-2.0
// Copyright The hostwait authors
// Contexts, devices, threads and processes on the simulated driver (two devices).
#include <sys/wait.h>
#include <unistd.h>

#include "support/sim.hpp"

using namespace cai_test;

namespace {

struct on_context {
  explicit on_context(CUcontext context) { SIM_OK(cuCtxPushCurrent(context)); }
  ~on_context() {
    CUcontext popped;
    cuCtxPopCurrent(&popped);
  }
};

CUcontext current() {
  CUcontext context = nullptr;
  SIM_OK(cuCtxGetCurrent(&context));
  return context;
}

CUcontext primary(int device) {
  SIM_OK(cuInit(0));
  CUcontext context = nullptr;
  SIM_OK(cuDevicePrimaryCtxRetain(&context, device));
  return context;
}

}  // namespace

TEST_CASE("data and streams of another device") {
  const CUcontext first = primary(0), second = primary(1);
  const driver_in_use real;
  CUdeviceptr there = 0;
  CUstream far = nullptr, near = nullptr;
  {
    const on_context scope(second);
    there = new_memory(4);
    far = new_stream();
  }
  const on_context scope(first);
  near = new_stream();
  hostwait_cai_ticket ticket;

  SECTION("a handle") {
    const hostwait_cai_ready in = behind(far, there);
    hostwait_sim_hold(far);
    CAI_OK(hostwait_cai_acquire(&in, 1, named(near), nullptr, &ticket, &err));
    CHECK(cuStreamQuery(near) == CUDA_ERROR_NOT_READY);
    hostwait_sim_release(far);
    SIM_OK(cuStreamSynchronize(near));
  }
  SECTION("stream 1 means the data's device, not the current one") {
    hostwait_sim_hold(CU_STREAM_LEGACY);  // the current device's: not to be waited for
    const hostwait_cai_ready in = behind(CU_STREAM_LEGACY, there);
    CAI_OK(hostwait_cai_acquire(&in, 1, named(near), nullptr, &ticket, &err));
    SIM_OK(cuStreamSynchronize(near));
    hostwait_sim_release_all();
    {
      const on_context other(second);
      hostwait_sim_hold(CU_STREAM_LEGACY);
    }
    CAI_OK(hostwait_cai_release(&ticket, &err));
    CAI_OK(hostwait_cai_acquire(&in, 1, named(near), nullptr, &ticket, &err));
    CHECK(cuStreamQuery(near) == CUDA_ERROR_NOT_READY);
  }
  SECTION("legacy to legacy of two devices is not the same stream") {
    const hostwait_cai_ready in = behind(CU_STREAM_LEGACY, there);
    const uint64_t waits = stats().waits;
    CAI_OK(hostwait_cai_acquire(&in, 1, {HOSTWAIT_CAI_LEGACY}, nullptr, &ticket, &err));
    CHECK(stats().waits - waits == 1);
  }
  CHECK(current() == first);
  CAI_OK(hostwait_cai_release(&ticket, &err));
  CHECK(current() == first);
  hostwait_sim_release_all();
}

TEST_CASE("resolve tells device, kind and usable pointer") {
  const CUcontext first = primary(0), second = primary(1);
  const driver_in_use real;
  const on_context scope(first);
  CUdeviceptr there = 0, managed = 0;
  {
    const on_context other(second);
    there = new_memory(64);
  }
  void* pinned = nullptr;
  SIM_OK(cuMemHostAlloc(&pinned, 64, CU_MEMHOSTALLOC_DEVICEMAP));
  SIM_OK(cuMemAllocManaged(&managed, 64, CU_MEM_ATTACH_GLOBAL));
  char pageable[64];
  const int64_t shape[] = {16};
  const auto resolve = [&](uint64_t ptr, uint32_t options, hostwait_cai_loc* loc) {
    hostwait_cai_desc desc;
    hostwait_cai_policy policy;
    hostwait_cai_policy_init(&policy);
    policy.options = options;
    REQUIRE(hostwait_cai_describe("<f4", ptr, 1, shape, nullptr, 0, &desc, nullptr) == 0);
    return hostwait_cai_resolve(&desc, &policy, loc, nullptr);
  };
  hostwait_cai_loc loc;
  CHECK(resolve(there, HOSTWAIT_CAI_CHECK_RANGE, &loc) == HOSTWAIT_CAI_OK);
  CHECK(loc.device == 1);
  CHECK(loc.kind == HOSTWAIT_CAI_MEM_DEVICE);
  CHECK(loc.context == value(second));
  CHECK(resolve(there + 16, HOSTWAIT_CAI_CHECK_RANGE, &loc) == HOSTWAIT_CAI_ERR_OUT_OF_RANGE);
  CHECK(resolve(value(pinned), 0, &loc) == HOSTWAIT_CAI_OK);
  CHECK(loc.kind == HOSTWAIT_CAI_MEM_PINNED);
  CHECK(loc.device == 0);
  CHECK(resolve(managed, 0, &loc) == HOSTWAIT_CAI_OK);
  CHECK(loc.kind == HOSTWAIT_CAI_MEM_MANAGED);
  CHECK(resolve(value(pageable), 0, &loc) == HOSTWAIT_CAI_ERR_NOT_DEVICE);
}

TEST_CASE("a thread without a context works, and has none afterwards") {
  const CUcontext first = primary(0);
  const driver_in_use real;
  CUstream c = nullptr, s = nullptr;
  CUdeviceptr data = 0;
  {
    const on_context scope(first);
    c = new_stream();
    s = new_stream();
    data = new_memory(4);
  }
  std::thread([&] {
    hostwait_cai_ticket ticket;
    int done = 0;
    for (CUstream producer : {s, static_cast<CUstream>(CU_STREAM_LEGACY)}) {
      const hostwait_cai_ready in = behind(producer, data);
      CAI_OK(hostwait_cai_acquire(&in, 1, named(c), nullptr, &ticket, &err));
      CAI_OK(hostwait_cai_poll(&ticket, &done, &err));
      CAI_OK(hostwait_cai_release(&ticket, &err));
      CAI_OK(hostwait_cai_acquire(&in, 1, {HOSTWAIT_CAI_PER_THREAD}, nullptr, &ticket, &err));
      CAI_OK(hostwait_cai_release(&ticket, &err));
      CAI_OK(hostwait_cai_wait_host(&in, 1, nullptr, nullptr, &err));
    }
    CHECK(current() == nullptr);
  }).join();
}

TEST_CASE("a context that dies takes its events along") {
  const driver_in_use real;
  SIM_OK(cuInit(0));
  for (int round = 0; round < 20; ++round) {
    const own_context context;
    const CUstream s = new_stream(), c = new_stream();
    const hostwait_cai_ready in = behind(s);
    hostwait_cai_ticket ticket;
    CAI_OK(hostwait_cai_acquire(&in, 1, named(c), nullptr, &ticket, &err));
    CAI_OK(hostwait_cai_release(&ticket, &err));
    CAI_OK(hostwait_cai_wait_host(&in, 1, nullptr, nullptr, &err));
  }
}

TEST_CASE("streams of two contexts of one device") {
  const driver_in_use real;
  const own_context outer;
  const CUstream c = new_stream();
  CUstream s = nullptr;
  const own_context inner;
  s = new_stream();
  const hostwait_cai_ready in = behind(s);
  hostwait_cai_ticket ticket;
  hostwait_sim_hold(s);
  CAI_OK(hostwait_cai_acquire(&in, 1, named(c), nullptr, &ticket, &err));
  CHECK(cuStreamQuery(c) == CUDA_ERROR_NOT_READY);
  hostwait_sim_release(s);
  SIM_OK(cuStreamSynchronize(c));
  CAI_OK(hostwait_cai_release(&ticket, &err));
  CHECK(current() == inner.context);
}

TEST_CASE("threads that end hand their events on, without a driver call") {
  const driver_in_use real;
  const own_context context;
  const CUstream s = new_stream(), c = new_stream();
  const hostwait_cai_ready in = behind(s);
  const auto one_thread = [&] {
    std::thread([&] {
      SIM_OK(cuCtxSetCurrent(context.context));
      hostwait_cai_ticket ticket;
      CAI_OK(hostwait_cai_acquire(&in, 1, named(c), nullptr, &ticket, &err));
      CAI_OK(hostwait_cai_release(&ticket, &err));
      hostwait_sim_record(1);  // from here on the thread only ends
    }).join();
    CHECK(hostwait_sim_recorded_count() == 0);
    hostwait_sim_record(0);
  };
  one_thread();
  const uint64_t created = stats().events_created;
  const uint64_t waits = stats().waits;
  for (int i = 0; i < 50; ++i) one_thread();
  CHECK(stats().events_created == created);
  CHECK(stats().waits - waits == 50);
  CHECK(hostwait_sim_calls("cuEventDestroy_v2") == 0);
}

TEST_CASE("threads at once") {
  const driver_in_use real;
  const own_context context;
  std::atomic<int> wrong{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      cuCtxSetCurrent(context.context);
      CUstream s, c;
      CUdeviceptr data, copy;
      cuStreamCreate(&s, CU_STREAM_NON_BLOCKING);
      cuStreamCreate(&c, CU_STREAM_NON_BLOCKING);
      cuMemAlloc(&data, 4);
      cuMemAlloc(&copy, 4);
      const hostwait_cai_ready in = behind(s, data);
      for (int i = 0; i < 100; ++i) {
        hostwait_cai_ticket ticket;
        const unsigned char expected = static_cast<unsigned char>(t * 50 + i);
        cuMemsetD8Async(data, expected, 4, s);
        wrong += hostwait_cai_acquire(&in, 1, named(c), nullptr, &ticket, nullptr) != 0;
        cuMemcpyDtoDAsync(copy, data, 4, c);
        wrong += hostwait_cai_release(&ticket, nullptr) != 0;
        wrong += hostwait_cai_wait_host(&in, 1, nullptr, nullptr, nullptr) != 0;
        wrong += *reinterpret_cast<unsigned char*>(copy) != expected;
      }
    });
  }
  for (std::thread& t : threads) t.join();
  CHECK(wrong == 0);
}

TEST_CASE("the forked child of a CUDA process is told so") {
  const driver_in_use real;
  const own_context context;
  const CUstream s = new_stream(), c = new_stream();
  const hostwait_cai_ready in = behind(s);
  hostwait_cai_ticket ticket;
  CAI_OK(hostwait_cai_acquire(&in, 1, named(c), nullptr, &ticket, &err));
  const pid_t child = fork();
  if (child == 0) {
    hostwait_cai_ticket other;
    const bool told =
        hostwait_cai_acquire(&in, 1, named(c), nullptr, &other, nullptr) ==
            HOSTWAIT_CAI_ERR_FORKED &&
        hostwait_cai_release(&ticket, nullptr) == HOSTWAIT_CAI_ERR_FORKED &&
        hostwait_cai_wait_host(&in, 1, nullptr, nullptr, nullptr) == HOSTWAIT_CAI_ERR_FORKED;
    _exit(told ? 0 : 1);
  }
  int status = 0;
  waitpid(child, &status, 0);
  CHECK(status == 0);
  CAI_OK(hostwait_cai_release(&ticket, &err));
}
