// SPDX-License-Identifier: Apache-2.0
// Copyright The hostwait authors
// Captures on the simulated driver: edges inside one, refusals at its border that leave it alive.
#include "support/sim.hpp"

using namespace cai_test;

namespace {

CUstreamCaptureStatus status_of(CUstream s) {
  CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_NONE;
  SIM_OK(cuStreamIsCapturing(s, &status));
  return status;
}

// Ends the capture, which must be alive, and returns an executable graph.
CUgraphExec end_capture(CUstream s) {
  CUgraph graph = nullptr;
  REQUIRE(status_of(s) == CU_STREAM_CAPTURE_STATUS_ACTIVE);
  SIM_OK(cuStreamEndCapture(s, &graph));
  CUgraphExec run = nullptr;
  SIM_OK(cuGraphInstantiate(&run, graph, 0));
  SIM_OK(cuGraphDestroy(graph));
  return run;
}

constexpr CUstreamCaptureMode modes[] = {CU_STREAM_CAPTURE_MODE_GLOBAL,
                                         CU_STREAM_CAPTURE_MODE_THREAD_LOCAL,
                                         CU_STREAM_CAPTURE_MODE_RELAXED};

hostwait_cai_policy with_capture(hostwait_cai_capture what) {
  hostwait_cai_policy p;
  hostwait_cai_policy_init(&p);
  p.capture = static_cast<uint8_t>(what);
  return p;
}

}  // namespace

TEST_CASE("inside one capture both ways become edges, and each replay gives the right value") {
  const own_context context;
  const driver_in_use real;
  for (const CUstreamCaptureMode mode : modes) {
    const CUstream s = new_stream(), c = new_stream();
    const CUdeviceptr data = new_memory(4), copy = new_memory(4);
    CUevent fork = sim_test::new_event();
    SIM_OK(cuStreamBeginCapture(s, mode));
    SIM_OK(cuEventRecord(fork, s));
    SIM_OK(cuStreamWaitEvent(c, fork, 0));  // c joins the capture
    SIM_OK(cuMemsetD8Async(data, 7, 4, s));
    const hostwait_cai_ready in = behind(s, data);
    hostwait_cai_ticket ticket;
    CAI_OK(hostwait_cai_acquire(&in, 1, named(c), nullptr, &ticket, &err));
    SIM_OK(cuMemcpyDtoDAsync(copy, data, 4, c));
    CAI_OK(hostwait_cai_release(&ticket, &err));
    SIM_OK(cuMemsetD8Async(data, 9, 4, s));
    CUgraphExec run = end_capture(s);  // unjoined work of c would be refused here
    for (int replay = 0; replay < 3; ++replay) {
      memset(reinterpret_cast<void*>(copy), 0, 4);
      SIM_OK(cuGraphLaunch(run, s));
      SIM_OK(cuStreamSynchronize(s));
      CHECK(*reinterpret_cast<char*>(copy) == 7);
      CHECK(*reinterpret_cast<char*>(data) == 9);
    }
    // The cache's events are not the graph's: plain use goes on.
    CAI_OK(hostwait_cai_acquire(&in, 1, named(c), nullptr, &ticket, &err));
    CAI_OK(hostwait_cai_release(&ticket, &err));
  }
}

TEST_CASE("a border is reported before any call, and the capture goes on") {
  const own_context context;
  const driver_in_use real;
  for (const CUstreamCaptureMode mode : modes) {
    const CUstream s = new_stream(), c = new_stream();
    const CUdeviceptr data = new_memory(4);
    hostwait_cai_ticket ticket;
    const hostwait_cai_ready from_s = behind(s, data), from_c = behind(c, data);
    SIM_OK(cuStreamBeginCapture(c, mode));
    CHECK(hostwait_cai_acquire(&from_s, 1, named(c), nullptr, &ticket, nullptr) ==
          HOSTWAIT_CAI_ERR_CAPTURE_BOUNDARY);
    CHECK(hostwait_cai_acquire(&from_c, 1, named(s), nullptr, &ticket, nullptr) ==
          HOSTWAIT_CAI_ERR_CAPTURE_BOUNDARY);
    CHECK(hostwait_cai_wait_host(&from_c, 1, nullptr, nullptr, nullptr) ==
          HOSTWAIT_CAI_ERR_CAPTURE_HOST_SYNC);
    CHECK(hostwait_cai_acquire_host(&from_c, 1, nullptr, &ticket, nullptr) ==
          HOSTWAIT_CAI_ERR_CAPTURE_HOST_SYNC);
    CHECK(hostwait_cai_retire(named(c), &ticket, nullptr) == HOSTWAIT_CAI_ERR_CAPTURE_BOUNDARY);
    const hostwait_cai_policy assume = with_capture(HOSTWAIT_CAI_CAPTURE_ASSUME_READY);
    CAI_OK(hostwait_cai_acquire(&from_s, 1, named(c), &assume, &ticket, &err));
    CAI_OK(hostwait_cai_release(&ticket, &err));
    SIM_OK(cuMemsetD8Async(data, 5, 4, c));
    CHECK(status_of(s) == CU_STREAM_CAPTURE_STATUS_NONE);
    CUgraphExec run = end_capture(c);
    SIM_OK(cuGraphLaunch(run, c));
    SIM_OK(cuStreamSynchronize(c));
    CHECK(*reinterpret_cast<char*>(data) == 5);
  }
}

TEST_CASE("the legacy stream is left alone while a blocking stream captures") {
  const own_context context;
  const driver_in_use real;
  const CUstream blocking = new_stream(CU_STREAM_DEFAULT), other = new_stream();
  const CUdeviceptr data = new_memory(4);
  const hostwait_cai_ready legacy = behind(CU_STREAM_LEGACY, data), plain = behind(other, data);
  hostwait_cai_ticket ticket;
  SIM_OK(cuStreamBeginCapture(blocking, CU_STREAM_CAPTURE_MODE_RELAXED));
  CHECK(hostwait_cai_acquire(&legacy, 1, named(blocking), nullptr, &ticket, nullptr) ==
        HOSTWAIT_CAI_ERR_CAPTURE_LEGACY);
  CHECK(hostwait_cai_acquire(&legacy, 1, named(other), nullptr, &ticket, nullptr) ==
        HOSTWAIT_CAI_ERR_CAPTURE_LEGACY);
  CHECK(hostwait_cai_acquire(&plain, 1, named(CU_STREAM_LEGACY), nullptr, &ticket, nullptr) ==
        HOSTWAIT_CAI_ERR_CAPTURE_LEGACY);
  hostwait_cai_ready unknown = legacy;
  unknown.kind = HOSTWAIT_CAI_READY_UNKNOWN;
  CHECK(hostwait_cai_acquire(&unknown, 1, named(blocking), nullptr, &ticket, nullptr) ==
        HOSTWAIT_CAI_ERR_CAPTURE_BOUNDARY);
  CHECK(hostwait_cai_acquire(&unknown, 1, named(other), nullptr, &ticket, nullptr) ==
        HOSTWAIT_CAI_ERR_CAPTURE_LEGACY);
  SIM_OK(cuMemsetD8Async(data, 5, 4, blocking));
  SIM_OK(cuGraphExecDestroy(end_capture(blocking)));
}

TEST_CASE("a capture that begins between acquire and release") {
  const own_context context;
  const driver_in_use real;
  const CUstream s = new_stream(), c = new_stream();
  const hostwait_cai_ready in = behind(s);
  for (const bool skip : {false, true}) {
    const hostwait_cai_policy policy =
        with_capture(skip ? HOSTWAIT_CAI_CAPTURE_ASSUME_READY : HOSTWAIT_CAI_CAPTURE_ERROR);
    hostwait_cai_ticket ticket;
    CAI_OK(hostwait_cai_acquire(&in, 1, named(c), &policy, &ticket, &err));
    SIM_OK(cuStreamBeginCapture(c, CU_STREAM_CAPTURE_MODE_GLOBAL));
    const uint64_t skipped = stats().back_edges_skipped;
    CHECK(hostwait_cai_release(&ticket, nullptr) ==
          (skip ? HOSTWAIT_CAI_OK : HOSTWAIT_CAI_ERR_CAPTURE_BOUNDARY));
    CHECK(stats().back_edges_skipped - skipped == (skip ? 1 : 0));
    SIM_OK(cuGraphExecDestroy(end_capture(c)));
  }
}

TEST_CASE("another thread's global capture survives everything this thread does") {
  const own_context context;
  const driver_in_use real;
  const CUstream elsewhere = new_stream(), s = new_stream(), c = new_stream();
  const CUdeviceptr data = new_memory(4);
  const hostwait_cai_ready in = behind(s, data);
  SIM_OK(cuStreamBeginCapture(elsewhere, CU_STREAM_CAPTURE_MODE_GLOBAL));
  std::thread([&] {
    SIM_OK(cuCtxSetCurrent(context.context));
    hostwait_cai_ticket ticket;
    int done = 0;
    // The first use on this thread creates its events; all the rest comes after.
    CAI_OK(hostwait_cai_acquire(&in, 1, named(c), nullptr, &ticket, &err));
    CAI_OK(hostwait_cai_poll(&ticket, &done, &err));
    CAI_OK(hostwait_cai_release(&ticket, &err));
    CAI_OK(hostwait_cai_acquire_host(&in, 1, nullptr, &ticket, &err));
    CAI_OK(hostwait_cai_poll(&ticket, &done, &err));
    CAI_OK(hostwait_cai_release(&ticket, &err));
    CAI_OK(hostwait_cai_wait_host(&in, 1, nullptr, nullptr, &err));
    CAI_OK(hostwait_cai_retire(named(c), &done, &err));
    CAI_OK(hostwait_cai_drain([](void*, void*) {}, nullptr, nullptr, &err));
  }).join();
  SIM_OK(cuMemsetD8Async(data, 5, 4, elsewhere));
  SIM_OK(cuGraphExecDestroy(end_capture(elsewhere)));
}
