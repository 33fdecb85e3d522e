// SPDX-License-Identifier: Apache-2.0
// Copyright The hostwait authors
// Runs with the preloaded library on the simulated driver: where waits are allowed the library's
// own is recorded, where they are refused it makes none, and nothing is ever refused to it.
#include <cuda.h>
#include <hostwait/cai.h>
#include <hostwait/hostwait.h>

#include <chrono>
#include <cstdio>
#include <thread>

#include "sim/hostwait_sim.h"

namespace {

int failures = 0;

void check(bool holds, const char* what) {
  if (holds) return;
  ++failures;
  fprintf(stderr, "does not hold: %s\n", what);
}
#define CHECK(condition) check((condition), #condition)

hostwait_stats stats() {
  hostwait_stats s{};
  s.size = sizeof s;
  hostwait_stats_get(&s);
  return s;
}

}  // namespace

int main() {
  CUcontext context;
  CUstream producer, consumer;
  CUdeviceptr data;
  if (cuInit(0) || cuDevicePrimaryCtxRetain(&context, 0) || cuCtxSetCurrent(context) ||
      cuStreamCreate(&producer, CU_STREAM_NON_BLOCKING) ||
      cuStreamCreate(&consumer, CU_STREAM_NON_BLOCKING) || cuMemAlloc(&data, 4)) {
    return 2;
  }
  hostwait_cai_ready in;
  HOSTWAIT_CAI_INIT(in);
  in.kind = HOSTWAIT_CAI_READY_STREAM;
  in.stream = reinterpret_cast<uint64_t>(producer);
  in.device = -1;
  const hostwait_cai_stream to = hostwait_cai_stream_of(consumer);
  CHECK(hostwait_present() == 1);
  unsigned char round = 0;
  for (const hostwait_action action : {HOSTWAIT_LOG, HOSTWAIT_FAIL, HOSTWAIT_ERROR}) {
    ++round;
    const int token = hostwait_push(action, HOSTWAIT_SYNC);
    CHECK(token > 0);
    CHECK(hostwait_action_of(HOSTWAIT_EVENT_SYNC) == action);
    CHECK(hostwait_action_of(HOSTWAIT_EVENT_SYNC | HOSTWAIT_COPY) == HOSTWAIT_INVALID);
    const hostwait_stats before = stats();
    hostwait_cai_ticket ticket;
    hostwait_sim_hold(producer);
    cuMemsetD8Async(data, round, 4, producer);
    CHECK(hostwait_cai_acquire(&in, 1, to, nullptr, &ticket, nullptr) == HOSTWAIT_CAI_OK);
    CHECK(hostwait_cai_release(&ticket, nullptr) == HOSTWAIT_CAI_OK);
    CHECK(stats().calls == before.calls);  // no waiting call of any kind
    std::thread later([&] {
      // A host that waits in the driver, or one that polls: both end with the work.
      if (action != HOSTWAIT_ERROR) hostwait_sim_await_waiting(1, 10000);
      // Longer than the call's own cost, so that the wait is one.
      std::this_thread::sleep_for(std::chrono::milliseconds(2));
      hostwait_sim_release(producer);
    });
    CHECK(hostwait_cai_wait_host(&in, 1, nullptr, nullptr, nullptr) == HOSTWAIT_CAI_OK);
    later.join();
    CHECK(*reinterpret_cast<volatile unsigned char*>(data) == round);
    const hostwait_stats after = stats();
    const bool refused = action == HOSTWAIT_ERROR;
    CHECK(after.waited - before.waited == (refused ? 0u : 1u));
    CHECK(after.violations - before.violations == (action == HOSTWAIT_FAIL ? 1u : 0u));
    CHECK(after.refused == 0);
    CHECK(hostwait_pop(token) == 0);
  }
  // An opt-out while work is pending is a finding of its own, and no violation.
  hostwait_cai_policy off;
  hostwait_cai_policy_init(&off);
  off.sync = HOSTWAIT_CAI_SYNC_OFF;
  const int failing = hostwait_push(HOSTWAIT_FAIL, HOSTWAIT_ALL);
  const hostwait_stats before = stats();
  hostwait_cai_ticket ticket;
  hostwait_sim_hold(producer);
  cuMemsetD8Async(data, 9, 4, producer);
  CHECK(hostwait_cai_acquire(&in, 1, to, &off, &ticket, nullptr) == HOSTWAIT_CAI_OK);
  CHECK(hostwait_cai_release(&ticket, nullptr) == HOSTWAIT_CAI_OK);
  hostwait_sim_release(producer);
  CHECK(hostwait_pop(failing) == 0);
  CHECK(stats().calls == before.calls + 1);
  CHECK(stats().violations == before.violations);
  CHECK(stats().mismatched_pops == 0);
  return failures == 0 ? 0 : 1;
}
