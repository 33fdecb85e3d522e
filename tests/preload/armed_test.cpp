// SPDX-License-Identifier: Apache-2.0
// Copyright The hostwait authors
// Kinds that are armed at start: poll and queue_full.
#include <hostwait/hostwait.h>

#include <thread>

#include "sim/hostwait_sim.h"
#include "support/catch.hpp"
#include "support/driver.hpp"
#include "support/live_record.hpp"

namespace {

struct world {
  CUstream stream = nullptr, other = nullptr;
  CUevent event = nullptr;
  world() {
    hostwait_test::first_context();
    REQUIRE(DRIVER(cuStreamCreate)(&stream, CU_STREAM_NON_BLOCKING) == CUDA_SUCCESS);
    REQUIRE(DRIVER(cuStreamCreate)(&other, CU_STREAM_NON_BLOCKING) == CUDA_SUCCESS);
    REQUIRE(DRIVER(cuEventCreate)(&event, CU_EVENT_DISABLE_TIMING) == CUDA_SUCCESS);
    REQUIRE(DRIVER(cuCtxSynchronize)() == CUDA_SUCCESS);  // the record begins at the first wait
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
  hostwait_test::each_counter(record, [&](const auto& c, const auto& site) {
    if (record.call(site.call).kind != kind) return;
    all.calls += c.calls;
    all.waited += c.waited;
    all.violations += c.violations;
    all.waited_ns += c.waited_ns;
  });
  return all;
}

// Calls of one symbol with this verdict and reason.
std::uint64_t calls_with(const char* symbol, hostwait_verdict verdict, hostwait_reason reason) {
  const hostwait::record_file record = hostwait_test::live_record();
  std::uint64_t calls = 0;
  hostwait_test::each_counter(record, [&](const auto& c, const auto& site) {
    if (record.string(record.call(site.call).name) == symbol && site.verdict == verdict &&
        site.reason == reason)
      calls += c.calls;
  });
  return calls;
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
  REQUIRE(DRIVER(hostwait_sim_hold)(w.stream) == 0);
  poll_not_ready(16);
  std::this_thread::sleep_for(std::chrono::milliseconds(3));
  poll_not_ready(1);
  REQUIRE(DRIVER(hostwait_sim_release)(w.stream) == 0);
  while (DRIVER(cuStreamQuery)(w.stream) == CUDA_ERROR_NOT_READY) std::this_thread::yield();
  const sums after = of_kind(HOSTWAIT_KIND_POLL);
  CHECK(after.waited == before.waited + 1);
  CHECK(after.waited_ns - before.waited_ns >= 3000000);
  CHECK(after.violations == before.violations);
}

TEST_CASE("fewer answers, or other work between, are no poll") {
  world& w = the_world();
  const sums before = of_kind(HOSTWAIT_KIND_POLL);
  REQUIRE(DRIVER(hostwait_sim_hold)(w.stream) == 0);
  poll_not_ready(10);
  REQUIRE(DRIVER(cuStreamSynchronize)(w.other) == CUDA_SUCCESS);
  poll_not_ready(10);
  REQUIRE(DRIVER(hostwait_sim_release)(w.stream) == 0);
  // Reset the row of answers before the stream is waited for.
  DRIVER(cuStreamSynchronize)(w.stream);
  CHECK(DRIVER(cuStreamQuery)(w.stream) == CUDA_SUCCESS);
  CHECK(of_kind(HOSTWAIT_KIND_POLL).waited == before.waited);
}

TEST_CASE("an enqueue call that waits for room in the queue is back-pressure, no violation") {
  world& w = the_world();
  const sums before = of_kind(HOSTWAIT_KIND_QUEUE_FULL);
  const int token = hostwait_push(HOSTWAIT_FAIL, HOSTWAIT_QUEUE_FULL);
  REQUIRE(DRIVER(hostwait_sim_hold)(w.stream) == 0);
  std::thread releaser([&] {
    DRIVER(hostwait_sim_await_waiting)(1, 20000);
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
    DRIVER(hostwait_sim_release)(w.stream);
  });
  for (int i = 0; i < 1100; ++i) REQUIRE(DRIVER(cuEventRecord)(w.event, w.stream) == CUDA_SUCCESS);
  releaser.join();
  hostwait_pop(token);
  const sums after = of_kind(HOSTWAIT_KIND_QUEUE_FULL);
  CHECK(after.waited >= before.waited + 1);
  CHECK(after.waited_ns - before.waited_ns >= 1000000);
  CHECK(after.violations == before.violations);
}

TEST_CASE("few calls since the stream or the context was idle: the queue has room") {
  world& w = the_world();
  const auto unsure = [] {
    return calls_with("cuEventRecord", HOSTWAIT_VERDICT_DEPENDS, HOSTWAIT_REASON_QUEUE_DEPTH);
  };
  REQUIRE(DRIVER(cuCtxSynchronize)() == CUDA_SUCCESS);
  // Each by its own, too: what earlier cases left counts on until its stream itself is seen idle.
  for (CUstream each : {w.stream, w.other, CUstream{nullptr}})
    REQUIRE(DRIVER(cuStreamSynchronize)(each) == CUDA_SUCCESS);
  const std::uint64_t before = unsure();
  const auto record = [&](int times) {
    for (int i = 0; i < times; ++i)
      REQUIRE(DRIVER(cuEventRecord)(w.event, w.stream) == CUDA_SUCCESS);
  };
  record(1000);
  CHECK(unsure() == before);
  REQUIRE(DRIVER(cuStreamSynchronize)(w.stream) == CUDA_SUCCESS);
  record(1000);
  CHECK(unsure() == before);
  record(100);  // more than are sure to fit
  CHECK(unsure() == before + 79);
  REQUIRE(DRIVER(cuStreamSynchronize)(w.other) == CUDA_SUCCESS);  // says nothing of the first
  record(1);
  CHECK(unsure() == before + 80);
  // Uploads that travel in the queue take more of it.
  REQUIRE(DRIVER(cuCtxSynchronize)() == CUDA_SUCCESS);
  CUdeviceptr device = 0;
  char host[64] = {};
  REQUIRE(DRIVER(cuMemAlloc_v2)(&device, 64) == CUDA_SUCCESS);
  REQUIRE(DRIVER(cuMemcpyHtoDAsync_v2)(device, host, 64, w.stream) == CUDA_SUCCESS);
  record(61);
  CHECK(unsure() == before + 80);
  record(2);
  CHECK(unsure() == before + 82);
}

TEST_CASE("a kernel's first launch depends on what it loads, later ones do not") {
  world& w = the_world();
  CUmodule module = nullptr;
  CUfunction tiny = nullptr;
  REQUIRE(DRIVER(cuModuleLoadData)(
              &module,
              ".version 7.0\n.target sm_70\n.address_size 64\n.visible .entry tiny(){ret;}\n") ==
          CUDA_SUCCESS);
  REQUIRE(DRIVER(cuModuleGetFunction)(&tiny, module, "tiny") == CUDA_SUCCESS);
  REQUIRE(DRIVER(cuCtxSynchronize)() == CUDA_SUCCESS);
  for (int i = 0; i < 3; ++i)
    REQUIRE(DRIVER(cuLaunchKernel)(tiny, 1, 1, 1, 1, 1, 1, 0, w.stream, nullptr, nullptr) ==
            CUDA_SUCCESS);
  CHECK(calls_with("cuLaunchKernel", HOSTWAIT_VERDICT_DEPENDS, HOSTWAIT_REASON_LAZY_LOAD) == 1);
  CHECK(calls_with("cuLaunchKernel", HOSTWAIT_VERDICT_NONE, HOSTWAIT_REASON_NONE) == 0);
  // Calls that wait for nothing leave no site; the end of a module makes its handles new ones.
  REQUIRE(DRIVER(cuModuleUnload)(module) == CUDA_SUCCESS);
}

TEST_CASE("a wait whose own stream has nothing in it names who holds it up") {
  world& w = the_world();
  const CUcontext context = hostwait_test::first_context();
  CUdeviceptr memory = 0;
  REQUIRE(DRIVER(cuMemAlloc_v2)(&memory, 4096) == CUDA_SUCCESS);
  REQUIRE(DRIVER(cuCtxSynchronize)() == CUDA_SUCCESS);
  // The hold is no driver call: by all that hostwait can know the stream is idle.
  REQUIRE(DRIVER(hostwait_sim_hold)(w.other) == 0);
  std::thread freeing([&] {
    DRIVER(cuCtxSetCurrent)(context);
    DRIVER(cuMemFree_v2)(memory);
  });
  REQUIRE(DRIVER(hostwait_sim_await_waiting)(1, 60000) == 1);
  std::thread releasing([&] {
    DRIVER(hostwait_sim_await_waiting)(2, 60000);
    std::this_thread::sleep_for(std::chrono::milliseconds(3));
    DRIVER(hostwait_sim_release)(w.other);
  });
  CHECK(DRIVER(cuStreamSynchronize)(w.other) == CUDA_SUCCESS);
  freeing.join();
  releasing.join();
  const hostwait::record_file record = hostwait_test::live_record();
  bool named = false;
  record.for_each(HOSTWAIT_SECTION_HOLDERS, [&](std::uint32_t i) {
    const hostwait_record_holder one = record.holder(i);
    named |= record.string(record.call(record.site(one.site).call).name) == "cuStreamSynchronize" &&
             record.string(record.call(one.holder_call).name) == "cuMemFree_v2";
  });
  CHECK(named);
}

// In a process of its own: what a thread is allowed is not seen, and what was not seen makes every
// later count unsure.
TEST_CASE("copies that are let through end the count", "[.allowed]") {
  world& w = the_world();
  REQUIRE(DRIVER(cuCtxSynchronize)() == CUDA_SUCCESS);
  const auto unsure = [] {
    return calls_with("cuEventRecord", HOSTWAIT_VERDICT_DEPENDS, HOSTWAIT_REASON_QUEUE_DEPTH);
  };
  const std::uint64_t before = unsure();
  REQUIRE(DRIVER(cuEventRecord)(w.event, w.stream) == CUDA_SUCCESS);
  CHECK(unsure() == before);
  const int token = hostwait_push(HOSTWAIT_ALLOW, HOSTWAIT_ASYNC_COPY);
  hostwait_pop(token);
  REQUIRE(DRIVER(cuEventRecord)(w.event, w.stream) == CUDA_SUCCESS);
  CHECK(unsure() == before + 1);
}
