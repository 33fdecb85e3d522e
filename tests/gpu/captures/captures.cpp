// SPDX-License-Identifier: Apache-2.0
// Copyright The hostwait authors
// Stream captures in the three modes, by the driver's interface found at run time, so that the same
// program runs on the simulated driver:
//   captures replay          captures and replays; prints what every call answered, and digests
//   captures break CALL      thread `breaker` breaks the global capture of thread `capturer` by
//                            CALL: query, sync, context, event, alloc
// Status: 0 as expected, 3 a call failed, 77 no driver or no device.
#include <pthread.h>

#include <atomic>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <thread>

#include "../driver_calls.hpp"

namespace {

constexpr unsigned count = 4096;
constexpr std::size_t bytes = count * sizeof(std::uint32_t);

// data[i] = data[i] * 3 + 1
constexpr const char* kernel = R"(.version 7.0
.target sm_70
.address_size 64
.visible .entry step(.param .u64 data)
{
.reg .b32 %r<6>; .reg .b64 %d<4>;
ld.param.u64 %d1, [data]; cvta.to.global.u64 %d1, %d1;
mov.u32 %r1, %ctaid.x; mov.u32 %r2, %ntid.x; mov.u32 %r3, %tid.x;
mad.lo.u32 %r4, %r1, %r2, %r3; mul.wide.u32 %d2, %r4, 4; add.u64 %d3, %d1, %d2;
ld.global.u32 %r5, [%d3]; mad.lo.u32 %r5, %r5, 3, 1; st.global.u32 [%d3], %r5; ret;
}
)";

CUcontext context;
CUstream captured, side, other;
CUevent fork_event, join_event, idle_event;
CUdeviceptr first, second;
std::uint32_t* host;
CUfunction step;

void set_up() {
  if (CALL(cuInit)(0) != CUDA_SUCCESS) {
    std::printf("the driver does not start\n");
    std::exit(77);
  }
  CUdevice device = 0;
  if (CALL(cuDeviceGet)(&device, 0) != CUDA_SUCCESS) {
    std::printf("no device\n");
    std::exit(77);
  }
  NEED(cuDevicePrimaryCtxRetain, &context, device);
  NEED(cuCtxSetCurrent, context);
  for (CUstream* s : {&captured, &side, &other}) NEED(cuStreamCreate, s, CU_STREAM_NON_BLOCKING);
  for (CUevent* e : {&fork_event, &join_event, &idle_event})
    NEED(cuEventCreate, e, CU_EVENT_DISABLE_TIMING);
  NEED(cuMemAlloc_v2, &first, bytes);
  NEED(cuMemAlloc_v2, &second, bytes);
  NEED(cuMemHostAlloc, reinterpret_cast<void**>(&host), 2 * bytes, 0);
  CUmodule module = nullptr;
  NEED(cuModuleLoadData, &module, kernel);
  NEED(cuModuleGetFunction, &step, module, "step");
}

void launch(CUstream stream, CUdeviceptr data) {
  void* arguments[] = {&data};
  NEED(cuLaunchKernel, step, count / 256, 1, 1, 256, 1, 1, 0, stream, arguments, nullptr);
}

// Whatever a first launch loads must not be loaded in a capture.
void warm_up() {
  launch(captured, first);
  NEED(cuStreamSynchronize, captured);
}

std::uint64_t digest(const std::uint32_t* data) {
  std::uint64_t sum = 1469598103934665603u;
  for (unsigned i = 0; i < count; ++i) sum = (sum ^ data[i]) * 1099511628211u;
  return sum;
}

void on_thread(const char* name, void (*run)(int), int argument) {
  std::thread([=] {
    pthread_setname_np(pthread_self(), name);
    NEED(cuCtxSetCurrent, context);
    run(argument);
  }).join();
}

// What another thread may do while this capture is open. In the global mode it asks first.
void work_beside(int mode) {
  CUstreamCaptureMode exchanged = CU_STREAM_CAPTURE_MODE_RELAXED;
  if (mode == CU_STREAM_CAPTURE_MODE_GLOBAL) NEED(cuThreadExchangeStreamCaptureMode, &exchanged);
  std::printf("beside wait\t%d\n", CALL(cuStreamSynchronize)(other));
  std::printf("beside query\t%d\n", CALL(cuStreamQuery)(other));
  std::printf("beside event\t%d\n", CALL(cuEventQuery)(idle_event));
}

void replay(CUstreamCaptureMode mode, const char* name) {
  std::uint32_t *const in = host, *const out = host + count;
  std::printf("%s begin\t%d\n", name, CALL(cuStreamBeginCapture_v2)(captured, mode));
  NEED(cuMemcpyHtoDAsync_v2, first, in, bytes, captured);
  NEED(cuEventRecord, fork_event, captured);
  NEED(cuStreamWaitEvent, side, fork_event, 0);
  NEED(cuMemsetD32Async, second, 7, count, side);
  launch(side, second);
  on_thread("beside", work_beside, mode);
  launch(captured, first);
  NEED(cuEventRecord, join_event, side);
  NEED(cuStreamWaitEvent, captured, join_event, 0);
  NEED(cuMemcpyDtoDAsync_v2, first, second, bytes / 2, captured);
  launch(captured, first);
  NEED(cuMemcpyDtoHAsync_v2, out, first, bytes, captured);
  CUgraph graph = nullptr;
  std::printf("%s end\t%d\n", name, CALL(cuStreamEndCapture)(captured, &graph));
  std::size_t nodes = 0;
  NEED(cuGraphGetNodes, graph, nullptr, &nodes);
  std::printf("%s nodes\t%zu\n", name, nodes);
  CUgraphExec run = nullptr;
  NEED(cuGraphInstantiateWithFlags, &run, graph, 0);
  for (unsigned i = 0; i < 5; ++i) {
    for (unsigned k = 0; k < count; ++k) in[k] = k * 2654435761u + i;
    std::memset(out, 0, bytes);
    NEED(cuGraphLaunch, run, captured);
    NEED(cuStreamSynchronize, captured);
    std::printf("%s replay %u\t%016llx\n", name, i, static_cast<unsigned long long>(digest(out)));
  }
  NEED(cuGraphExecDestroy, run);
  NEED(cuGraphDestroy, graph);
}

std::string call_to_make;
std::atomic<bool> begun{false}, broken{false};

}  // namespace

// Kept out of line, with names of their own and no jump in place of the call: a finding shows them
// as the user's functions.
extern "C" __attribute__((noinline)) int capture_here() {
  volatile int result = CALL(cuStreamBeginCapture_v2)(captured, CU_STREAM_CAPTURE_MODE_GLOBAL);
  return result;
}

extern "C" __attribute__((noinline)) int break_here() {
  volatile int result = 0;
  if (call_to_make == "query") {
    result = CALL(cuStreamQuery)(other);
  } else if (call_to_make == "sync") {
    result = CALL(cuStreamSynchronize)(other);
  } else if (call_to_make == "context") {
    result = CALL(cuCtxSynchronize)();
  } else if (call_to_make == "event") {
    result = CALL(cuEventQuery)(idle_event);
  } else {
    CUdeviceptr memory = 0;
    result = CALL(cuMemAlloc_v2)(&memory, 1 << 20);
  }
  return result;
}

namespace {

void wait_until(const std::atomic<bool>& set) {
  while (!set) std::this_thread::yield();
}

int break_capture() {
  int ended = 0;
  std::thread capturer([&] {
    pthread_setname_np(pthread_self(), "capturer");
    NEED(cuCtxSetCurrent, context);
    need(static_cast<CUresult>(capture_here()), "cuStreamBeginCapture");
    NEED(cuMemcpyDtoDAsync_v2, second, first, bytes, captured);
    begun = true;
    wait_until(broken);
    CUgraph graph = nullptr;
    ended = CALL(cuStreamEndCapture)(captured, &graph);
  });
  std::thread breaker([&] {
    pthread_setname_np(pthread_self(), "breaker");
    NEED(cuCtxSetCurrent, context);
    wait_until(begun);
    std::printf("call\t%d\n", break_here());
    broken = true;
  });
  capturer.join();
  breaker.join();
  std::printf("end\t%d\n", ended);
  return ended == CUDA_SUCCESS ? 3 : 0;
}

}  // namespace

int main(int argc, char** argv) {
  const std::string what = argc > 1 ? argv[1] : "";
  set_up();
  warm_up();
  if (what == "break" && argc > 2) {
    call_to_make = argv[2];
    return break_capture();
  }
  if (what != "replay") {
    std::printf("captures replay | captures break CALL\n");
    return 2;
  }
  replay(CU_STREAM_CAPTURE_MODE_GLOBAL, "global");
  replay(CU_STREAM_CAPTURE_MODE_THREAD_LOCAL, "thread_local");
  replay(CU_STREAM_CAPTURE_MODE_RELAXED, "relaxed");
  return 0;
}
