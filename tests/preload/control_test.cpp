// SPDX-License-Identifier: Apache-2.0
// Copyright The hostwait authors
// Pausing, threads= and window=. Hidden cases need options of their own: control.cmake gives them.
#include <hostwait/hostwait.h>
#include <pthread.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <atomic>
#include <cstdlib>
#include <string>
#include <thread>
#include <vector>

#include "support/catch.hpp"
#include "support/driver.hpp"
#include "support/stats.hpp"

namespace {

struct world {
  CUcontext context = hostwait_test::first_context();
  CUstream stream = nullptr;

  world() { REQUIRE(DRIVER(cuStreamCreate)(&stream, CU_STREAM_NON_BLOCKING) == CUDA_SUCCESS); }
};

world& the_world() {
  static world w;
  return w;
}

using hostwait_test::stats;

CUresult wait_once() {
  return DRIVER(cuStreamSynchronize)(the_world().stream);
}

std::uint64_t now_ms() {
  timespec now{};
  clock_gettime(CLOCK_MONOTONIC, &now);
  return static_cast<std::uint64_t>(now.tv_sec) * 1000 +
         static_cast<std::uint64_t>(now.tv_nsec) / 1000000;
}

// What this many waits added to the record.
std::uint64_t recorded_of(int waits) {
  const std::uint64_t before = stats().calls;
  for (int i = 0; i < waits; ++i) REQUIRE(wait_once() == CUDA_SUCCESS);
  return stats().calls - before;
}

// The tool outside the preload: it is another program's tool here.
int tool(const std::string& words) {
  const char* path = std::getenv("HOSTWAIT_TOOL");
  REQUIRE(path != nullptr);
  const int status =
      std::system(("env -u LD_PRELOAD '" + std::string(path) + "' " + words).c_str());
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

std::string set_me(const char* change) {
  return "set " + std::to_string(getpid()) + " " + change;
}

}  // namespace

TEST_CASE("a pause from inside holds from the next call on, and so does its end") {
  CHECK(recorded_of(3) == 3);
  REQUIRE(hostwait_pause() == 0);
  const std::uint64_t allowed = stats().allowed;
  CHECK(recorded_of(100) == 0);
  CHECK(stats().allowed - allowed == 100);
  const int token = hostwait_push(HOSTWAIT_ERROR, HOSTWAIT_SYNC);
  CHECK(wait_once() == CUDA_SUCCESS);  // paused: nothing is refused either
  REQUIRE(hostwait_resume() == 0);
  CHECK(wait_once() == CUDA_ERROR_NOT_PERMITTED);
  CHECK(hostwait_pop(token) == 0);
  CHECK(recorded_of(3) == 3);
}

TEST_CASE("pauses from inside and outside are two switches", "[native]") {
  CHECK(recorded_of(1) == 1);
  REQUIRE(hostwait_pause() == 0);
  REQUIRE(tool(set_me("resume level=log")) == 0);
  CHECK(recorded_of(2) == 0);
  REQUIRE(tool(set_me("pause")) == 0);
  CHECK(recorded_of(2) == 0);
  REQUIRE(hostwait_resume() == 0);
  CHECK(recorded_of(2) == 0);
  REQUIRE(tool(set_me("resume")) == 0);
  CHECK(recorded_of(2) == 2);
}

TEST_CASE("a busy program is paused and resumed from outside", "[native]") {
  constexpr unsigned count = 3;
  std::atomic<std::uint64_t> made[count] = {};
  std::atomic<bool> stop{false};
  std::vector<std::thread> threads;
  const auto wait = DRIVER(cuStreamSynchronize);
  CUstream stream = the_world().stream;
  for (auto& mine : made) {
    threads.emplace_back([&] {
      while (!stop.load()) {
        wait(stream);
        mine.fetch_add(1);
      }
    });
  }
  const auto let_each_make = [&](std::uint64_t calls) {
    std::uint64_t from[count];
    for (unsigned i = 0; i < count; ++i) from[i] = made[i].load();
    for (unsigned i = 0; i < count; ++i)
      while (made[i].load() < from[i] + calls) usleep(100);
  };
  let_each_make(10);
  CHECK(stats().calls >= 3 * 10);
  REQUIRE(tool(set_me("pause")) == 0);
  let_each_make(2);  // one call may have been under way
  const std::uint64_t still = stats().calls;
  let_each_make(100);
  CHECK(stats().calls == still);
  REQUIRE(tool(set_me("resume")) == 0);
  let_each_make(2);
  const std::uint64_t again = stats().calls;
  CHECK(again > still);
  let_each_make(100);
  CHECK(stats().calls >= again + 3 * 100);
  stop.store(true);
  for (std::thread& each : threads) each.join();
}

TEST_CASE("threads= keeps process-wide frames from threads of these names", "[.threads]") {
  the_world();
  const int token = hostwait_push_process(HOSTWAIT_ERROR, HOSTWAIT_SYNC, "training");
  REQUIRE(token > 0);
  const auto on_thread = [](const char* name) {
    CUresult result = CUDA_ERROR_UNKNOWN;
    std::thread([&] {
      pthread_setname_np(pthread_self(), name);
      result = wait_once();
    }).join();
    return result;
  };
  CHECK(on_thread("loader-0") == CUDA_SUCCESS);
  CHECK(on_thread("other") == CUDA_SUCCESS);
  CHECK(on_thread("another") == CUDA_ERROR_NOT_PERMITTED);
  CHECK(on_thread("autograd") == CUDA_ERROR_NOT_PERMITTED);
  // A thread's own frame counts on every thread.
  std::thread([] {
    pthread_setname_np(pthread_self(), "loader-1");
    const int own = hostwait_push(HOSTWAIT_ERROR, HOSTWAIT_SYNC);
    CHECK(wait_once() == CUDA_ERROR_NOT_PERMITTED);
    hostwait_pop(own);
    CHECK(wait_once() == CUDA_SUCCESS);
  }).join();
  CHECK(hostwait_pop_process(token) == 0);
}

TEST_CASE("before its window nothing is recorded or refused", "[.future]") {
  const int token = hostwait_push(HOSTWAIT_ERROR, HOSTWAIT_SYNC);
  CHECK(recorded_of(200) == 0);
  hostwait_pop(token);
}

TEST_CASE("after its window nothing is recorded or refused", "[.past]") {
  const int token = hostwait_push(HOSTWAIT_ERROR, HOSTWAIT_SYNC);
  CHECK(recorded_of(200) == 0);
  hostwait_pop(token);
}

TEST_CASE("a window without end has begun", "[.open]") {
  CHECK(recorded_of(3) == 3);
}

constexpr int window_missed = 77;

// Run by the next case in a process of its own, where the window opens and closes. Its status is
// window_missed where it made no call before the window or none inside it.
TEST_CASE("window helper", "[.helper]") {
  const std::uint64_t begin = std::strtoull(std::getenv("BEGIN_MS"), nullptr, 10);
  const std::uint64_t end = std::strtoull(std::getenv("END_MS"), nullptr, 10);
  int before = 0, inside = 0, after = 0;
  while (after < 3) {
    const std::uint64_t before_call = now_ms();
    const std::uint64_t recorded = recorded_of(1);
    const std::uint64_t after_call = now_ms();
    if (after_call < begin || before_call >= end) {
      REQUIRE(recorded == 0);
      before += after_call < begin ? 1 : 0;
      after += before_call >= end ? 1 : 0;
    } else if (before_call >= begin && after_call < end) {
      REQUIRE(recorded == 1);
      ++inside;
    }
    usleep(500);
  }
  if (before == 0 || inside == 0) _exit(window_missed);
}

// The options are read at the start of a process, so the times must be set before it: a window that
// a slow machine misses is tried again later and longer, up to a minute.
TEST_CASE("a window opens and closes at its times", "[native]") {
  int status = -1;
  for (std::uint64_t span = 100; span <= 32000; span *= 2) {
    const std::uint64_t begin = now_ms() + span;
    const pid_t child = fork();
    if (child == 0) {
      const std::string first = std::to_string(begin), second = std::to_string(begin + span);
      const std::string options = std::getenv("HOSTWAIT_OPTIONS");
      setenv("BEGIN_MS", first.c_str(), 1);
      setenv("END_MS", second.c_str(), 1);
      setenv("HOSTWAIT_OPTIONS", (options + ":window=" + first + "," + second).c_str(), 1);
      execl("/proc/self/exe", "helper", "[helper]", static_cast<char*>(nullptr));
      _exit(99);
    }
    REQUIRE(waitpid(child, &status, 0) == child);
    if (!WIFEXITED(status) || WEXITSTATUS(status) != window_missed) break;
  }
  REQUIRE(WIFEXITED(status));
  CHECK(WEXITSTATUS(status) == 0);
}
