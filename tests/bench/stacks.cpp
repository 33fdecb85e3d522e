// SPDX-License-Identifier: Apache-2.0
// Copyright The hostwait authors
// Calls and ranges in a loop, as a library that bench_python.py calls from the depth that it wants:
// what Python frames, NVTX ranges and new sites cost. Every function returns nanoseconds.
#include <cuda.h>
#include <dlfcn.h>
#include <hostwait/hostwait.h>
#include <time.h>
#include <unwind.h>

#include <cstdint>
#ifdef HOSTWAIT_BENCH_NVTX
#include <nvtx3/nvToolsExt.h>
#endif

namespace {

CUresult (*wait_for)(CUstream);

double now_ns() {
  timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return static_cast<double>(now.tv_sec) * 1e9 + static_cast<double>(now.tv_nsec);
}

// 20 native frames above the call, whatever stands below.
__attribute__((noinline)) int at_depth(int depth, int (*what)()) {
  if (depth == 0) return what();
  return at_depth(depth - 1, what) + 1;
}

int one_wait() {
  return static_cast<int>(wait_for(nullptr));
}

int one_unwind() {
  int frames = 20;
  _Unwind_Backtrace(
      [](_Unwind_Context* context, void* left) {
        static_cast<void>(_Unwind_GetIP(context));
        return --*static_cast<int*>(left) == 0 ? _URC_END_OF_STACK : _URC_NO_REASON;
      },
      &frames);
  return frames;
}

// A stack of 20 native frames of its own for every `shape`: its low bits stand outermost.
__attribute__((noinline)) int left(int depth, std::uint32_t shape);
__attribute__((noinline)) int right(int depth, std::uint32_t shape);
int deeper(int depth, std::uint32_t shape) {
  if (depth == 0) return one_wait();
  return (shape & 1) != 0 ? left(depth - 1, shape >> 1) : right(depth - 1, shape >> 1);
}
int left(int depth, std::uint32_t shape) {
  return deeper(depth, shape) + 1;
}
int right(int depth, std::uint32_t shape) {
  return deeper(depth, shape) + 2;
}

double per_call(long calls, int (*what)()) {
  int sum = 0;
  const double start = now_ns();
  for (long i = 0; i < calls; ++i) sum += at_depth(20, what);
  const double ns = (now_ns() - start) / static_cast<double>(calls);
  return sum < 0 ? -1 : ns;
}

}  // namespace

#define EXPORTED extern "C" __attribute__((visibility("default")))

EXPORTED int bench_start() {
  void* driver = dlopen("libcuda.so.1", RTLD_NOW);
  if (driver == nullptr) return 77;
  const auto init = reinterpret_cast<CUresult (*)(unsigned)>(dlsym(driver, "cuInit"));
  const auto retain = reinterpret_cast<CUresult (*)(CUcontext*, CUdevice)>(
      dlsym(driver, "cuDevicePrimaryCtxRetain"));
  const auto set = reinterpret_cast<CUresult (*)(CUcontext)>(dlsym(driver, "cuCtxSetCurrent"));
  wait_for = reinterpret_cast<CUresult (*)(CUstream)>(dlsym(driver, "cuStreamSynchronize"));
  CUcontext context = nullptr;
  return init(0) == 0 && retain(&context, 0) == 0 && set(context) == 0 ? 0 : 3;
}

EXPORTED double bench_calls(long calls) {
  return per_call(calls, one_wait);
}

EXPORTED double bench_unwind(long calls) {
  return per_call(calls, one_unwind);
}

// A push and a pop; < 0 where the benchmark was built without NVTX's headers.
EXPORTED double bench_nvtx(long calls) {
#ifdef HOSTWAIT_BENCH_NVTX
  const double start = now_ns();
  for (long i = 0; i < calls; ++i) {
    nvtxRangePushA("train_step");
    nvtxRangePop();
  }
  return (now_ns() - start) / static_cast<double>(calls);
#else
  static_cast<void>(calls);
  return -1;
#endif
}

// One call from a native stack that was not seen before, for every number `shape`.
EXPORTED double bench_first_sight(std::uint32_t shape) {
  const double start = now_ns();
  const int result = deeper(20, shape);
  return result < 0 ? -1 : now_ns() - start;
}
