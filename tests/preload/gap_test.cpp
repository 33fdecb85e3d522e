// SPDX-License-Identifier: Apache-2.0
// Copyright The hostwait authors
// gap=1: how long a thread queues nothing after a wait, until its next launch, memset or copy.
#include <hostwait/hostwait.h>

#include <chrono>
#include <thread>

#include "support/catch.hpp"
#include "support/driver.hpp"
#include "support/live_record.hpp"

namespace {

constexpr std::chrono::milliseconds nothing{20};

struct gaps {
  std::uint64_t count = 0, total_ns = 0, max_ns = 0, calls = 0;
};

// Of this kind, or of all (HOSTWAIT_KIND_COUNT), with this label.
gaps gaps_after(std::uint32_t kind, const char* label) {
  const hostwait::record_file record = hostwait_test::live_record();
  gaps all;
  record.for_each(HOSTWAIT_SECTION_COUNTERS, [&](std::uint32_t i) {
    const hostwait_record_counters c = record.counters(i);
    if (c.site == HOSTWAIT_COUNTERS_FREE) return;
    const hostwait_record_site site = record.site(c.site);
    if ((site.flags & HOSTWAIT_SITE_GAP) == 0 || record.string(site.label) != label) return;
    if (kind != HOSTWAIT_KIND_COUNT && record.call(site.call).kind != kind) return;
    for (const std::uint32_t bucket : record.histogram(i).bucket) all.count += bucket;
    all.total_ns += c.total_ns;
    all.max_ns = std::max(all.max_ns, c.max_ns);
    all.calls += c.calls;
  });
  return all;
}

class labelled {
 public:
  explicit labelled(const char* label)
      : token_(hostwait_push_label(HOSTWAIT_LOG, HOSTWAIT_ALL, label)) {
    REQUIRE(token_ > 0);
  }
  ~labelled() { hostwait_pop(token_); }

 private:
  int token_;
};

struct world {
  CUstream stream = nullptr;
  CUdeviceptr memory = 0;
  world() {
    hostwait_test::first_context();
    REQUIRE(DRIVER(cuStreamCreate)(&stream, CU_STREAM_NON_BLOCKING) == CUDA_SUCCESS);
    REQUIRE(DRIVER(cuMemAlloc_v2)(&memory, 4096) == CUDA_SUCCESS);
  }
  void wait() const { REQUIRE(DRIVER(cuStreamSynchronize)(stream) == CUDA_SUCCESS); }
  void queue() const { REQUIRE(DRIVER(cuMemsetD8Async)(memory, 0, 16, stream) == CUDA_SUCCESS); }
};
const world& the_world() {
  static const world w;
  return w;
}

constexpr auto nothing_ns = static_cast<std::uint64_t>(std::chrono::nanoseconds(nothing).count());

}  // namespace

TEST_CASE("the gap lasts from the wait to the next memset") {
  const world& w = the_world();
  {
    const labelled label("memset");
    w.wait();
  }
  std::this_thread::sleep_for(nothing);
  w.queue();
  std::this_thread::sleep_for(nothing);  // the thread has queued: no gap
  w.queue();
  const gaps seen = gaps_after(HOSTWAIT_KIND_STREAM_SYNC, "memset");
  CHECK(seen.count == 1);
  CHECK(seen.total_ns >= nothing_ns);
  CHECK(seen.max_ns == seen.total_ns);
  CHECK(seen.calls == 0);
}

TEST_CASE("a copy ends it too") {
  const world& w = the_world();
  {
    const labelled label("copy");
    w.wait();
  }
  std::this_thread::sleep_for(nothing);
  char host[16];
  REQUIRE(DRIVER(cuMemcpyDtoH_v2)(host, w.memory, sizeof host) == CUDA_SUCCESS);
  const gaps seen = gaps_after(HOSTWAIT_KIND_STREAM_SYNC, "copy");
  CHECK(seen.count == 1);
  CHECK(seen.total_ns >= nothing_ns);
}

TEST_CASE("of two waits in a row each has its part, and nothing is counted twice") {
  const world& w = the_world();
  const auto begin = std::chrono::steady_clock::now();
  {
    const labelled label("two");
    w.wait();
    std::this_thread::sleep_for(nothing);
    REQUIRE(DRIVER(cuCtxSynchronize)() == CUDA_SUCCESS);
    std::this_thread::sleep_for(nothing);
  }
  w.queue();
  const std::uint64_t passed = static_cast<std::uint64_t>(
      std::chrono::nanoseconds(std::chrono::steady_clock::now() - begin).count());
  CHECK(gaps_after(HOSTWAIT_KIND_STREAM_SYNC, "two").total_ns >= nothing_ns);
  CHECK(gaps_after(HOSTWAIT_KIND_DEVICE_SYNC, "two").total_ns >= nothing_ns);
  CHECK(gaps_after(HOSTWAIT_KIND_COUNT, "two").total_ns <= passed);
}

TEST_CASE("another thread's work does not end it; a thread's end leaves it open") {
  const world& w = the_world();
  std::thread([&] {
    hostwait_test::first_context();
    const labelled label("other thread");
    w.wait();
  }).join();
  w.queue();
  CHECK(gaps_after(HOSTWAIT_KIND_COUNT, "other thread").count == 0);
  // The slot's next thread begins without one.
  std::thread([&] {
    hostwait_test::first_context();
    char host[16];
    REQUIRE(DRIVER(cuMemcpyDtoH_v2)(host, w.memory, sizeof host) == CUDA_SUCCESS);
    w.queue();
  }).join();
  CHECK(gaps_after(HOSTWAIT_KIND_COUNT, "other thread").count == 0);
}

TEST_CASE("enqueue calls are no findings: queue_full is not armed") {
  const hostwait::record_file record = hostwait_test::live_record();
  record.for_each(HOSTWAIT_SECTION_CALLS,
                  [&](std::uint32_t i) { CHECK(record.call(i).kind != HOSTWAIT_KIND_QUEUE_FULL); });
  CHECK(hostwait_push(HOSTWAIT_LOG, HOSTWAIT_QUEUE_FULL) == HOSTWAIT_NOT_ARMED);
}
