// SPDX-License-Identifier: Apache-2.0
// Copyright The hostwait authors
// Kinds that are armed at start: poll and queue_full.
#include <hostwait/hostwait.h>

#include <string>
#include <thread>

#include "sim/hostwait_sim.h"
#include "support/catch.hpp"
#include "support/driver.hpp"
#include "support/live_record.hpp"

namespace {

#define SIM(function) (::hostwait_test::driver<decltype(function)>(#function))

struct world {
  CUstream stream = nullptr, other = nullptr;
  CUevent event = nullptr;
  world() {
    CUcontext context = nullptr;
    REQUIRE(DRIVER(cuInit)(0) == CUDA_SUCCESS);
    REQUIRE(DRIVER(cuDevicePrimaryCtxRetain)(&context, 0) == CUDA_SUCCESS);
    REQUIRE(DRIVER(cuCtxSetCurrent)(context) == CUDA_SUCCESS);
    REQUIRE(DRIVER(cuStreamCreate)(&stream, CU_STREAM_NON_BLOCKING) == CUDA_SUCCESS);
    REQUIRE(DRIVER(cuStreamCreate)(&other, CU_STREAM_NON_BLOCKING) == CUDA_SUCCESS);
    REQUIRE(DRIVER(cuEventCreate)(&event, CU_EVENT_DISABLE_TIMING) == CUDA_SUCCESS);
  }
};
world& the_world() {
  static world w;
  return w;
}

struct sums {
  std::uint64_t calls = 0, waited = 0, violations = 0, waited_ns = 0;
};
sums of_kind(hostwait_kind_number kind) {
  const hostwait::record_file record = hostwait_test::live_record();
  sums all;
  record.for_each(HOSTWAIT_SECTION_COUNTERS, [&](std::uint32_t i) {
    const hostwait_record_counters c = record.counters(i);
    if (c.site == HOSTWAIT_COUNTERS_FREE || record.call(record.site(c.site).call).kind != kind)
      return;
    all.calls += c.calls;
    all.waited += c.waited;
    all.violations += c.violations;
    all.waited_ns += c.waited_ns;
  });
  return all;
}

void poll_not_ready(int times) {
  for (int i = 0; i < times; ++i)
    REQUIRE(DRIVER(cuStreamQuery)(the_world().stream) == CUDA_ERROR_NOT_READY);
}

}  // namespace

TEST_CASE("what is armed can be pushed") {
  const int token = hostwait_push(HOSTWAIT_FAIL, HOSTWAIT_POLL | HOSTWAIT_QUEUE_FULL);
  CHECK(token > 0);
  CHECK(hostwait_pop(token) == 0);
  CHECK(hostwait_push(HOSTWAIT_LOG, HOSTWAIT_UNLISTED) == HOSTWAIT_NOT_ARMED);
}

TEST_CASE("sixteen answers in a row are one wait, from the first query on") {
  world& w = the_world();
  DRIVER(cuStreamSynchronize)(w.stream);
  const sums before = of_kind(HOSTWAIT_KIND_POLL);
  REQUIRE(SIM(hostwait_sim_hold)(w.stream) == 0);
  poll_not_ready(16);
  std::this_thread::sleep_for(std::chrono::milliseconds(3));
  poll_not_ready(1);
  REQUIRE(SIM(hostwait_sim_release)(w.stream) == 0);
  while (DRIVER(cuStreamQuery)(w.stream) == CUDA_ERROR_NOT_READY) std::this_thread::yield();
  const sums after = of_kind(HOSTWAIT_KIND_POLL);
  CHECK(after.waited == before.waited + 1);
  CHECK(after.waited_ns - before.waited_ns >= 3000000);
  CHECK(after.violations == before.violations);
}

TEST_CASE("fewer answers, or other work between, are no poll") {
  world& w = the_world();
  const sums before = of_kind(HOSTWAIT_KIND_POLL);
  REQUIRE(SIM(hostwait_sim_hold)(w.stream) == 0);
  poll_not_ready(10);
  REQUIRE(DRIVER(cuStreamSynchronize)(w.other) == CUDA_SUCCESS);
  poll_not_ready(10);
  REQUIRE(SIM(hostwait_sim_release)(w.stream) == 0);
  // Reset the row of answers before the stream is waited for.
  DRIVER(cuStreamSynchronize)(w.stream);
  CHECK(DRIVER(cuStreamQuery)(w.stream) == CUDA_SUCCESS);
  CHECK(of_kind(HOSTWAIT_KIND_POLL).waited == before.waited);
}

TEST_CASE("an enqueue call that waits for room in the queue is back-pressure, no violation") {
  world& w = the_world();
  const sums before = of_kind(HOSTWAIT_KIND_QUEUE_FULL);
  const int token = hostwait_push(HOSTWAIT_FAIL, HOSTWAIT_QUEUE_FULL);
  REQUIRE(SIM(hostwait_sim_hold)(w.stream) == 0);
  std::thread releaser([&] {
    SIM(hostwait_sim_await_waiting)(1, 20000);
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
    SIM(hostwait_sim_release)(w.stream);
  });
  for (int i = 0; i < 1100; ++i) REQUIRE(DRIVER(cuEventRecord)(w.event, w.stream) == CUDA_SUCCESS);
  releaser.join();
  hostwait_pop(token);
  const sums after = of_kind(HOSTWAIT_KIND_QUEUE_FULL);
  CHECK(after.waited >= before.waited + 1);
  CHECK(after.waited_ns - before.waited_ns >= 1000000);
  CHECK(after.violations == before.violations);
}
