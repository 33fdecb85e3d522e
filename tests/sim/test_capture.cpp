// SPDX-License-Identifier: Apache-2.0
// Copyright The hostwait authors
// Capture: what is collected, what a forbidden call does to it, modes, and launches of the result.
#include <thread>

#include "sim_test.hpp"

using namespace sim_test;

namespace {

CUstreamCaptureStatus status_of(CUstream s) {
  CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_NONE;
  SIM_OK(cuStreamIsCapturing(s, &status));
  return status;
}

size_t nodes_of(CUgraph g) {
  size_t count = 0;
  SIM_OK(cuGraphGetNodes(g, nullptr, &count));
  return count;
}

// Begins a capture, makes the call, and checks its result and whether the capture survived.
void in_capture(CUstreamCaptureMode mode, CUstream s, CUresult expected, bool survives,
                const std::function<CUresult()>& call) {
  SIM_OK(cuStreamBeginCapture(s, mode));
  CHECK(call() == expected);
  CHECK(status_of(s) ==
        (survives ? CU_STREAM_CAPTURE_STATUS_ACTIVE : CU_STREAM_CAPTURE_STATUS_INVALIDATED));
  CUgraph g = nullptr;
  CHECK(cuStreamEndCapture(s, &g) ==
        (survives ? CUDA_SUCCESS : CUDA_ERROR_STREAM_CAPTURE_INVALIDATED));
  CHECK((g != nullptr) == survives);
  CHECK(status_of(s) == CU_STREAM_CAPTURE_STATUS_NONE);
}

constexpr auto global = CU_STREAM_CAPTURE_MODE_GLOBAL;
constexpr auto thread_local_mode = CU_STREAM_CAPTURE_MODE_THREAD_LOCAL;
constexpr auto relaxed = CU_STREAM_CAPTURE_MODE_RELAXED;
constexpr auto unsupported = CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;

}  // namespace

TEST_CASE("captured work runs at the launch, each time, with values") {
  own_context context;
  CUstream s = new_stream(), side = new_stream();
  CUdeviceptr a = new_memory(8), b = new_memory(8);
  SIM_OK(cuMemsetD8(a, 1, 8));
  SIM_OK(cuMemsetD8(b, 0, 8));
  CUevent fork = new_event(), join = new_event();
  SIM_OK(cuStreamBeginCapture(s, global));
  SIM_OK(cuMemcpyDtoDAsync(b, a, 8, s));
  SIM_OK(cuEventRecord(fork, s));
  SIM_OK(cuStreamWaitEvent(side, fork, 0));
  CHECK(status_of(side) == CU_STREAM_CAPTURE_STATUS_ACTIVE);
  SIM_OK(cuMemsetD8Async(a, 2, 8, side));
  SIM_OK(cuEventRecord(join, side));
  SIM_OK(cuStreamWaitEvent(s, join, 0));
  CUgraph g = nullptr;
  SIM_OK(cuStreamEndCapture(s, &g));
  CHECK(nodes_of(g) == 2);
  CHECK(*reinterpret_cast<char*>(b) == 0);

  CUgraphExec run = nullptr;
  SIM_OK(cuGraphInstantiate(&run, g, 0));
  SIM_OK(cuGraphLaunch(run, s));
  SIM_OK(cuStreamSynchronize(s));
  CHECK(*reinterpret_cast<char*>(b) == 1);
  CHECK(*reinterpret_cast<char*>(a) == 2);
  SIM_OK(cuGraphLaunch(run, s));
  SIM_OK(cuStreamSynchronize(s));
  CHECK(*reinterpret_cast<char*>(b) == 2);
  CHECK_FALSE(host_stops_behind(s, [&] {
    SIM_OK(cuGraphLaunch(run, s));
    SIM_OK(cuGraphExecDestroy(run));
    SIM_OK(cuGraphDestroy(g));
  }));
}

TEST_CASE("waits and queries invalidate a global capture, as measured") {
  own_context context;
  CUstream s = new_stream(), other = new_stream();
  CUevent e = new_event();
  CUdeviceptr d = new_memory(64);
  char host[64];
  in_capture(global, s, unsupported, false, [&] { return cuStreamSynchronize(s); });
  in_capture(global, s, unsupported, false, [&] { return cuCtxSynchronize(); });
  in_capture(global, s, unsupported, false, [&] { return cuStreamQuery(other); });
  in_capture(global, s, unsupported, false, [&] { return cuStreamSynchronize(other); });
  in_capture(global, s, unsupported, false, [&] { return cuEventQuery(e); });
  in_capture(global, s, unsupported, false, [&] { return cuEventSynchronize(e); });
  in_capture(global, s, CUDA_SUCCESS, true, [&] { return cuMemcpyDtoH(host, d, 64); });
  in_capture(global, s, unsupported, false, [&] { return cuMemFree(d); });
  in_capture(global, s, CUDA_SUCCESS, true, [&] {
    CUpointer_attribute which = CU_POINTER_ATTRIBUTE_MEMORY_TYPE;
    unsigned type;
    void* out = &type;
    return cuPointerGetAttributes(1, &which, &out, d);
  });
  in_capture(global, s, CUDA_SUCCESS, true, [&] { return cuMemcpyDtoHAsync(host, d, 64, s); });
  in_capture(global, s, CUDA_SUCCESS, true, [&] { return cuMemcpyDtoHAsync(host, d, 64, other); });
}

TEST_CASE("a relaxed capture allows what does not touch it") {
  own_context context;
  CUstream s = new_stream(), other = new_stream();
  in_capture(relaxed, s, CUDA_SUCCESS, true, [&] { return cuStreamSynchronize(other); });
  in_capture(relaxed, s, unsupported, false, [&] { return cuStreamSynchronize(s); });
  in_capture(relaxed, s, unsupported, false, [&] { return cuCtxSynchronize(); });
  in_capture(relaxed, s, CUDA_SUCCESS, true, [&] {
    CUdeviceptr d;
    return cuMemAlloc(&d, 16);
  });
}

TEST_CASE("other threads are forbidden by a global capture only") {
  own_context context;
  CUstream s = new_stream(), other = new_stream();
  auto elsewhere = [&] {
    CUresult result = CUDA_SUCCESS;
    std::thread([&] {
      cuCtxSetCurrent(context.context);
      result = cuStreamSynchronize(other);
    }).join();
    return result;
  };
  in_capture(global, s, unsupported, false, elsewhere);
  in_capture(thread_local_mode, s, CUDA_SUCCESS, true, elsewhere);
  auto relaxed_elsewhere = [&] {
    CUresult result = CUDA_SUCCESS;
    std::thread([&] {
      cuCtxSetCurrent(context.context);
      CUstreamCaptureMode mode = relaxed;
      cuThreadExchangeStreamCaptureMode(&mode);
      result = cuStreamSynchronize(other);
    }).join();
    return result;
  };
  in_capture(global, s, CUDA_SUCCESS, true, relaxed_elsewhere);
}

TEST_CASE("the thread's capture mode is exchanged") {
  CUstreamCaptureMode mode = relaxed;
  SIM_OK(cuInit(0));
  SIM_OK(cuThreadExchangeStreamCaptureMode(&mode));
  CHECK(mode == global);
  SIM_OK(cuThreadExchangeStreamCaptureMode(&mode));
  CHECK(mode == relaxed);
}

TEST_CASE("the legacy stream may not depend on a captured blocking stream") {
  own_context context;
  CUstream blocking = new_stream(CU_STREAM_DEFAULT);
  CUdeviceptr d = new_memory(16);
  in_capture(global, blocking, CUDA_ERROR_STREAM_CAPTURE_IMPLICIT, false,
             [&] { return cuMemsetD8Async(d, 0, 16, nullptr); });
  in_capture(relaxed, blocking, CUDA_ERROR_STREAM_CAPTURE_IMPLICIT, false,
             [&] { return cuStreamSynchronize(nullptr); });
  CHECK(cuStreamBeginCapture(nullptr, global) == unsupported);
}

TEST_CASE("ends that do not fit their beginning") {
  own_context context;
  CUstream s = new_stream(), side = new_stream();
  CUgraph g = nullptr;
  CHECK(cuStreamEndCapture(s, &g) == CUDA_ERROR_ILLEGAL_STATE);
  SIM_OK(cuStreamBeginCapture(s, global));
  CHECK(cuStreamBeginCapture(s, global) == CUDA_ERROR_ILLEGAL_STATE);
  CUresult elsewhere = CUDA_SUCCESS;
  std::thread([&] { elsewhere = cuStreamEndCapture(s, &g); }).join();
  CHECK(elsewhere == CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD);
  CUevent fork = new_event();
  SIM_OK(cuEventRecord(fork, s));
  SIM_OK(cuStreamWaitEvent(side, fork, 0));
  CHECK(cuStreamEndCapture(side, &g) == CUDA_ERROR_STREAM_CAPTURE_UNMATCHED);
  SIM_OK(cuLaunchHostFunc(
      side, [](void*) {}, nullptr));
  CHECK(cuEventQuery(fork) == unsupported);
  CHECK(cuStreamEndCapture(s, &g) == CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
}

TEST_CASE("work that was not joined again is reported") {
  own_context context;
  CUstream s = new_stream(), side = new_stream();
  CUevent fork = new_event();
  SIM_OK(cuStreamBeginCapture(s, relaxed));
  SIM_OK(cuEventRecord(fork, s));
  SIM_OK(cuStreamWaitEvent(side, fork, 0));
  SIM_OK(cuLaunchHostFunc(
      side, [](void*) {}, nullptr));
  CHECK(cuEventQuery(fork) == CUDA_ERROR_CAPTURED_EVENT);
  CUgraph g = nullptr;
  CHECK(cuStreamEndCapture(s, &g) == CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);

  SIM_OK(cuStreamBeginCapture(s, relaxed));
  SIM_OK(cuEventRecord(fork, s));
  SIM_OK(cuStreamWaitEvent(side, fork, 0));
  SIM_OK(cuLaunchHostFunc(
      side, [](void*) {}, nullptr));
  CHECK(cuStreamEndCapture(s, &g) == CUDA_ERROR_STREAM_CAPTURE_UNJOINED);
}

TEST_CASE("capture info names the capture, its graph and the last nodes") {
  own_context context;
  CUstream s = new_stream();
  SIM_OK(cuStreamBeginCapture(s, global));
  SIM_OK(cuLaunchHostFunc(
      s, [](void*) {}, nullptr));
  CUstreamCaptureStatus status;
  cuuint64_t id = 0;
  CUgraph inside = nullptr, g = nullptr;
  const CUgraphNode* last = nullptr;
  const CUgraphEdgeData* edges = nullptr;
  size_t count = 0;
  SIM_OK(cuStreamGetCaptureInfo(s, &status, &id, &inside, &last, &edges, &count));
  CHECK(status == CU_STREAM_CAPTURE_STATUS_ACTIVE);
  CHECK(id != 0);
  CHECK(count == 1);
  CUgraphNodeType type;
  SIM_OK(cuGraphNodeGetType(last[0], &type));
  CHECK(type == CU_GRAPH_NODE_TYPE_HOST);
  SIM_OK(cuStreamEndCapture(s, &g));
  CHECK(g == inside);
}
