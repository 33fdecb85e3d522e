// SPDX-License-Identifier: Apache-2.0
// Copyright The hostwait authors
// Victim and holder: a call that waits for nothing, held up while another thread frees or loads.
#include <hostwait/hostwait.h>
#include <pthread.h>
#include <unistd.h>

#include <atomic>
#include <cstddef>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "sim/hostwait_sim.h"
#include "support/catch.hpp"
#include "support/driver.hpp"
#include "support/live_record.hpp"

namespace {

constexpr const char* ptx =
    ".version 7.0\n.target sm_70\n.address_size 64\n.visible .entry tiny(){ret;}\n";

struct world {
  CUcontext context = hostwait_test::first_context();
  CUstream busy = nullptr, own = nullptr;
  CUdeviceptr device = 0;
  void* pinned = nullptr;
  world() {
    REQUIRE(DRIVER(cuStreamCreate)(&busy, CU_STREAM_NON_BLOCKING) == CUDA_SUCCESS);
    REQUIRE(DRIVER(cuStreamCreate)(&own, CU_STREAM_NON_BLOCKING) == CUDA_SUCCESS);
    REQUIRE(DRIVER(cuMemAlloc_v2)(&device, 4096) == CUDA_SUCCESS);
    REQUIRE(DRIVER(cuMemHostAlloc)(&pinned, 4096, 0) == CUDA_SUCCESS);
  }
};
world& the_world() {
  static world w;
  return w;
}

std::vector<hostwait_record_holder> entries() {
  const hostwait::record_file record = hostwait_test::live_record();
  std::vector<hostwait_record_holder> all;
  record.for_each(HOSTWAIT_SECTION_HOLDERS,
                  [&](std::uint32_t i) { all.push_back(record.holder(i)); });
  return all;
}

std::string name_of_call(std::uint32_t call) {
  const hostwait::record_file record = hostwait_test::live_record();
  return std::string(record.string(record.call(call).name));
}
std::string call_of(std::uint32_t site) {
  return name_of_call(hostwait_test::live_record().site(site).call);
}

void in_context(const char* name, const std::function<void()>& run) {
  pthread_setname_np(pthread_self(), name);
  DRIVER(cuCtxSetCurrent)(the_world().context);
  run();
}

// `hold` waits for the busy stream on one thread, `suffer` is made on another meanwhile.
void beside(const char* holder, const std::function<void()>& hold, const char* victim,
            const std::function<void()>& suffer) {
  REQUIRE(DRIVER(hostwait_sim_hold)(the_world().busy) == 0);
  std::thread first([&] { in_context(holder, hold); });
  REQUIRE(DRIVER(hostwait_sim_await_waiting)(1, 60000) == 1);
  std::thread second([&] { in_context(victim, suffer); });
  REQUIRE(DRIVER(hostwait_sim_await_waiting)(2, 60000) == 1);
  usleep(5000);  // longer than any own cost
  REQUIRE(DRIVER(hostwait_sim_release)(the_world().busy) == 0);
  first.join();
  second.join();
}

void pinned_copy() {
  world& w = the_world();
  CHECK(DRIVER(cuMemcpyHtoDAsync_v2)(w.device, w.pinned, 4096, w.own) == CUDA_SUCCESS);
}

// The newest entry of that holding call.
hostwait_record_holder entry_of(const std::string& call) {
  hostwait_record_holder found = {};
  for (const hostwait_record_holder& one : entries())
    if (name_of_call(one.holder_call) == call) found = one;
  return found;
}

std::uint64_t held_at(std::uint32_t site) {
  const hostwait::record_file record = hostwait_test::live_record();
  std::uint64_t held = 0;
  hostwait_test::each_counter(record, [&](const auto& c, const auto&) {
    if (c.site == site) held += c.held;
  });
  return held;
}

// Frees what it is given, one after the other.
class freeing_thread {
 public:
  freeing_thread() {
    the_world();  // made here: its context is to be current on the thread of the test
    thread_ = std::thread([this] { in_context("freeing", [this] { run(); }); });
  }
  ~freeing_thread() {
    next_ = end;
    thread_.join();
  }
  void begin(CUdeviceptr memory) { next_ = memory; }
  void await_end() {
    while (next_ != 0) usleep(100);
  }

 private:
  static constexpr CUdeviceptr end = ~CUdeviceptr{0};
  void run() {
    for (CUdeviceptr memory = 0; (memory = next_) != end; usleep(100)) {
      if (memory == 0) continue;
      DRIVER(cuMemFree_v2)(memory);
      next_ = 0;
    }
  }
  std::atomic<CUdeviceptr> next_{0};
  std::thread thread_;
};

// One copy for each holder, all made at one place and each held for at least 3 ms.
std::vector<hostwait_record_holder> added_by_copies_held_by(
    const std::vector<freeing_thread*>& holders) {
  world& w = the_world();
  const auto before = static_cast<std::ptrdiff_t>(entries().size());
  for (freeing_thread* holder : holders) {
    CUdeviceptr memory = 0;
    REQUIRE(DRIVER(cuMemAlloc_v2)(&memory, 4096) == CUDA_SUCCESS);
    REQUIRE(DRIVER(hostwait_sim_hold)(w.busy) == 0);
    holder->begin(memory);
    REQUIRE(DRIVER(hostwait_sim_await_waiting)(1, 60000) == 1);
    std::thread releasing([&] {
      DRIVER(hostwait_sim_await_waiting)(2, 60000);
      usleep(3000);
      DRIVER(hostwait_sim_release)(w.busy);
    });
    pinned_copy();
    releasing.join();
    holder->await_end();
  }
  const auto after = entries();
  return {after.begin() + before, after.end()};
}

}  // namespace

TEST_CASE("a pinned copy on a stream of its own is held by a free on another thread") {
  CUdeviceptr memory = 0;
  the_world();
  REQUIRE(DRIVER(cuMemAlloc_v2)(&memory, 4096) == CUDA_SUCCESS);
  beside(
      "freeing", [&] { CHECK(DRIVER(cuMemFree_v2)(memory) == CUDA_SUCCESS); }, "copying",
      pinned_copy);
  const hostwait_record_holder one = entry_of("cuMemFree_v2");
  REQUIRE(one.count == 1);
  CHECK(std::string(one.holder_thread) == "freeing");
  CHECK(std::string(one.thread) == "copying");
  CHECK(one.holder_tid != one.tid);
  CHECK(call_of(one.site) == "cuMemcpyHtoDAsync_v2");
  CHECK(held_at(one.site) == 1);
  CHECK(one.max_ns >= 4000000);
  CHECK(one.total_ns == one.max_ns);
  // Whichever of the two calls returned first, the holder's place is known in the end.
  REQUIRE(one.holder_site != 0);
  CHECK(call_of(one.holder_site - 1) == "cuMemFree_v2");
  CHECK(hostwait_test::live_record().site(one.holder_site - 1).native != 0);
}

TEST_CASE("the same by a load; an allocation is held too, though its own cost is not known") {
  world& w = the_world();
  CUmodule module = nullptr;
  CUdeviceptr memory = 0;
  beside(
      "loading", [&] { CHECK(DRIVER(cuModuleLoadData)(&module, ptx) == CUDA_SUCCESS); },
      "allocating", [&] { CHECK(DRIVER(cuMemAlloc_v2)(&memory, 4096) == CUDA_SUCCESS); });
  const hostwait_record_holder one = entry_of("cuModuleLoadData");
  REQUIRE(one.count == 1);
  CHECK(call_of(one.site) == "cuMemAlloc_v2");
  CHECK(held_at(one.site) == 1);
  CHECK(std::string(one.holder_thread) == "loading");
  CHECK(DRIVER(cuStreamSynchronize)(w.own) == CUDA_SUCCESS);
}

TEST_CASE("a thread that waits holds nobody, and a wait is not held") {
  world& w = the_world();
  const std::size_t before = entries().size();
  beside(
      "waiting", [&] { CHECK(DRIVER(cuStreamSynchronize)(w.busy) == CUDA_SUCCESS); }, "waiting too",
      [&] { CHECK(DRIVER(cuCtxSynchronize)() == CUDA_SUCCESS); });
  CHECK(entries().size() == before);
}

TEST_CASE("held again at the same place by the same thread is the same entry") {
  freeing_thread thread;
  const auto added = added_by_copies_held_by({&thread, &thread});
  REQUIRE(added.size() == 1);
  CHECK(added[0].count == 2);
  CHECK(added[0].max_ns >= 3000000);
  CHECK(added[0].total_ns >= added[0].max_ns + 3000000);
  CHECK(held_at(added[0].site) == 2);
}

TEST_CASE("held again at the same place by another thread is a further entry") {
  freeing_thread first, second;
  const auto added = added_by_copies_held_by({&first, &second});
  REQUIRE(added.size() == 2);
  CHECK(added[0].count == 1);
  CHECK(added[1].count == 1);
  CHECK(added[0].site == added[1].site);
  CHECK(added[0].holder_tid != added[1].holder_tid);
  CHECK(held_at(added[0].site) == 2);
}
