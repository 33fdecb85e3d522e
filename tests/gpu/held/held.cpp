// SPDX-License-Identifier: Apache-2.0
// Copyright The hostwait authors
// Who is held up by whom: while a kernel runs, thread `freeing` is inside cuMemFree and thread
// `copying` makes an asynchronous copy from pinned memory on a stream of its own. By the driver's
// interface found at run time, so that the same program runs on the simulated driver.
//   held free|load    what the first thread does meanwhile
// Status: 0 as expected, 3 a call failed, 77 no driver or no device.
#include <pthread.h>

#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <thread>

#include "../driver_calls.hpp"

namespace {

// Ends by itself after so many nanoseconds.
constexpr const char* kernel = R"(.version 7.0
.target sm_70
.address_size 64
.visible .entry spin(.param .u64 ns)
{
.reg .b64 %d<5>; .reg .pred %p;
ld.param.u64 %d1, [ns]; mov.u64 %d2, %globaltimer;
AGAIN:
mov.u64 %d3, %globaltimer; sub.u64 %d4, %d3, %d2;
setp.lt.u64 %p, %d4, %d1; @%p bra AGAIN; ret;
}
)";
constexpr unsigned long long busy_ns = 500'000'000;

CUcontext context;
CUstream busy, own;
CUdeviceptr target, freed;
void* pinned;
CUfunction spin;

void set_up() {
  CUdevice device = 0;
  if (CALL(cuInit)(0) != CUDA_SUCCESS || CALL(cuDeviceGet)(&device, 0) != CUDA_SUCCESS) {
    std::printf("no device\n");
    std::exit(77);
  }
  NEED(cuDevicePrimaryCtxRetain, &context, device);
  NEED(cuCtxSetCurrent, context);
  NEED(cuStreamCreate, &busy, CU_STREAM_NON_BLOCKING);
  NEED(cuStreamCreate, &own, CU_STREAM_NON_BLOCKING);
  NEED(cuMemAlloc_v2, &target, 1 << 20);
  NEED(cuMemAlloc_v2, &freed, 1 << 20);
  NEED(cuMemHostAlloc, &pinned, 1 << 20, 0);
  CUmodule module = nullptr;
  NEED(cuModuleLoadData, &module, kernel);
  NEED(cuModuleGetFunction, &spin, module, "spin");
}

void keep_busy(unsigned long long ns) {
  void* arguments[] = {&ns};
  NEED(cuLaunchKernel, spin, 1, 1, 1, 1, 1, 1, 0, busy, arguments, nullptr);
}

}  // namespace

// Kept out of line, with names of their own and no jump in place of the call.
extern "C" __attribute__((noinline)) int hold_here(bool load) {
  CUmodule module = nullptr;
  volatile int result = load ? CALL(cuModuleLoadData)(&module, kernel) : CALL(cuMemFree_v2)(freed);
  return result;
}
extern "C" __attribute__((noinline)) int copy_here() {
  volatile int result = CALL(cuMemcpyHtoDAsync_v2)(target, pinned, 1 << 20, own);
  return result;
}

int main(int argc, char** argv) {
  const bool load = argc > 1 && std::string(argv[1]) == "load";
  set_up();
  // What a first launch and a first copy set up is not to be waited for later.
  keep_busy(1000);
  need(static_cast<CUresult>(copy_here()), "the first copy");
  NEED(cuStreamSynchronize, busy);
  NEED(cuStreamSynchronize, own);
  keep_busy(busy_ns);
  std::atomic<bool> over{false};
  std::thread holder([&] {
    pthread_setname_np(pthread_self(), load ? "loading" : "freeing");
    NEED(cuCtxSetCurrent, context);
    need(static_cast<CUresult>(hold_here(load)), "the call that holds");
    over = true;
  });
  std::thread victim([&] {
    pthread_setname_np(pthread_self(), "copying");
    NEED(cuCtxSetCurrent, context);
    // Again and again, since nothing says when the other thread is inside its call.
    do {
      need(static_cast<CUresult>(copy_here()), "the copy");
      std::this_thread::sleep_for(std::chrono::milliseconds(2));
    } while (!over);
  });
  holder.join();
  victim.join();
  NEED(cuCtxSynchronize);
  std::printf("done\n");
  return 0;
}
