// SPDX-License-Identifier: Apache-2.0
// Copyright The hostwait authors
// The policy as a program uses it: under the preload, on the simulated driver.
#include <fcntl.h>
#include <hostwait/hostwait.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstring>
#include <functional>
#include <hostwait/hostwait.hpp>
#include <string>
#include <thread>
#include <vector>

#include "sim/hostwait_sim.h"
#include "support/catch.hpp"
#include "support/driver.hpp"
#include "support/live_record.hpp"
#include "support/stats.hpp"

namespace {

struct world {
  CUcontext context = hostwait_test::first_context();
  CUstream stream = nullptr;
  CUevent event = nullptr;
  CUdeviceptr device = 0;
  void* pinned = nullptr;
  std::vector<char> pageable = std::vector<char>(8 << 20);

  world() {
    REQUIRE(DRIVER(cuStreamCreate)(&stream, CU_STREAM_NON_BLOCKING) == CUDA_SUCCESS);
    REQUIRE(DRIVER(cuEventCreate)(&event, CU_EVENT_DISABLE_TIMING) == CUDA_SUCCESS);
    REQUIRE(DRIVER(cuEventRecord)(event, stream) == CUDA_SUCCESS);
    REQUIRE(DRIVER(cuMemAlloc_v2)(&device, 8 << 20) == CUDA_SUCCESS);
    REQUIRE(DRIVER(cuMemHostAlloc)(&pinned, 1 << 20, 0) == CUDA_SUCCESS);
  }
};

world& the_world() {
  static world w;
  return w;
}

using hostwait_test::stats;

struct waiting_call {
  const char* symbol;
  std::uint32_t kind;
  std::function<CUresult()> make;
};

// One call per refusable kind and shape, each of which would wait by its arguments.
std::vector<waiting_call> refusable_calls() {
  world& w = the_world();
  return {
      {"cuCtxSynchronize", HOSTWAIT_DEVICE_SYNC, [] { return DRIVER(cuCtxSynchronize)(); }},
      {"cuStreamSynchronize", HOSTWAIT_STREAM_SYNC,
       [&] { return DRIVER(cuStreamSynchronize)(w.stream); }},
      {"cuEventSynchronize", HOSTWAIT_EVENT_SYNC,
       [&] { return DRIVER(cuEventSynchronize)(w.event); }},
      {"cuMemcpyHtoD_v2", HOSTWAIT_COPY,
       [&] { return DRIVER(cuMemcpyHtoD_v2)(w.device, w.pageable.data(), 64); }},
      {"cuMemcpyDtoH_v2", HOSTWAIT_COPY,
       [&] { return DRIVER(cuMemcpyDtoH_v2)(w.pageable.data(), w.device, 64); }},
      {"cuMemcpy", HOSTWAIT_COPY,
       [&] {
         return DRIVER(cuMemcpy)(w.device, reinterpret_cast<CUdeviceptr>(w.pageable.data()), 64);
       }},
      {"cuMemcpyDtoHAsync_v2", HOSTWAIT_ASYNC_COPY,
       [&] { return DRIVER(cuMemcpyDtoHAsync_v2)(w.pageable.data(), w.device, 64, w.stream); }},
      {"cuMemcpyHtoDAsync_v2", HOSTWAIT_ASYNC_COPY,
       [&] {
         return DRIVER(cuMemcpyHtoDAsync_v2)(w.device, w.pageable.data(), 4 << 20, w.stream);
       }},
      {"cuMemsetD8_v2", HOSTWAIT_MEMSET,
       [&] { return DRIVER(cuMemsetD8_v2)(reinterpret_cast<CUdeviceptr>(w.pinned), 0, 64); }},
  };
}

}  // namespace

TEST_CASE("the shim is present") {
  REQUIRE(hostwait_present() == 1);
}

TEST_CASE("pairs: refused inside a region, untouched outside") {
  for (const waiting_call& call : refusable_calls()) {
    INFO(call.symbol);
    const std::uint64_t made = DRIVER(hostwait_sim_calls)(call.symbol);
    const int token = hostwait_push(HOSTWAIT_ERROR, call.kind);
    REQUIRE(token > 0);
    CHECK(call.make() == CUDA_ERROR_NOT_PERMITTED);
    CHECK(DRIVER(hostwait_sim_calls)(call.symbol) == made);
    CHECK(hostwait_pop(token) == 0);
    CHECK(call.make() == CUDA_SUCCESS);
    CHECK(DRIVER(hostwait_sim_calls)(call.symbol) == made + 1);
    const int other = hostwait_push(HOSTWAIT_ERROR, HOSTWAIT_ALL & ~call.kind);
    CHECK(call.make() == CUDA_SUCCESS);
    CHECK(hostwait_pop(other) == 0);
  }
}

TEST_CASE("calls that cannot wait pass under error") {
  world& w = the_world();
  const hostwait::guard guard{hostwait::action::error, hostwait::all};
  CHECK(DRIVER(cuMemcpyDtoHAsync_v2)(w.pinned, w.device, 64, w.stream) == CUDA_SUCCESS);
  CHECK(DRIVER(cuMemcpyDtoD_v2)(w.device, w.device + 4096, 64) == CUDA_SUCCESS);
  CHECK(DRIVER(cuMemsetD8_v2)(w.device, 0, 64) == CUDA_SUCCESS);
  CHECK(DRIVER(cuMemFree_v2)(0) == CUDA_SUCCESS);
}

TEST_CASE("a refused copy leaves its destination untouched") {
  world& w = the_world();
  REQUIRE(DRIVER(cuMemsetD8_v2)(w.device, 7, 64) == CUDA_SUCCESS);
  std::memset(w.pageable.data(), 1, 64);
  {
    const hostwait::guard guard{hostwait::action::error, hostwait::sync};
    CHECK(DRIVER(cuMemcpyDtoH_v2)(w.pageable.data(), w.device, 64) == CUDA_ERROR_NOT_PERMITTED);
  }
  CHECK(w.pageable[0] == 1);
  CHECK(DRIVER(cuMemcpyDtoH_v2)(w.pageable.data(), w.device, 64) == CUDA_SUCCESS);
  CHECK(w.pageable[63] == 7);
}

TEST_CASE("a thread's frame is that thread's alone") {
  world& w = the_world();
  const hostwait::guard guard{hostwait::action::error, hostwait::sync};
  CHECK(DRIVER(cuStreamSynchronize)(w.stream) == CUDA_ERROR_NOT_PERMITTED);
  CUresult elsewhere = CUDA_ERROR_UNKNOWN;
  std::thread([&] {
    DRIVER(cuCtxSetCurrent)(w.context);
    elsewhere = DRIVER(cuStreamSynchronize)(w.stream);
  }).join();
  CHECK(elsewhere == CUDA_SUCCESS);
}

TEST_CASE("a process frame reaches every thread, below its own frames") {
  world& w = the_world();
  const int token = hostwait_push_process(HOSTWAIT_ERROR, HOSTWAIT_SYNC, "everywhere");
  REQUIRE(token > 0);
  CUresult plain = CUDA_ERROR_UNKNOWN, allowed = CUDA_ERROR_UNKNOWN;
  std::thread([&] {
    DRIVER(cuCtxSetCurrent)(w.context);
    plain = DRIVER(cuStreamSynchronize)(w.stream);
    const hostwait::guard allow{hostwait::action::allow, hostwait::sync};
    allowed = DRIVER(cuStreamSynchronize)(w.stream);
  }).join();
  CHECK(plain == CUDA_ERROR_NOT_PERMITTED);
  CHECK(allowed == CUDA_SUCCESS);
  CHECK(DRIVER(cuStreamSynchronize)(w.stream) == CUDA_ERROR_NOT_PERMITTED);
  CHECK(hostwait_pop_process(token) == 0);
  CHECK(DRIVER(cuStreamSynchronize)(w.stream) == CUDA_SUCCESS);
}

TEST_CASE("tokens: twice, on another thread, out of order") {
  const std::uint64_t before = stats().mismatched_pops;
  const int outer = hostwait_push(HOSTWAIT_LOG, HOSTWAIT_SYNC);
  const int inner = hostwait_push(HOSTWAIT_ERROR, HOSTWAIT_SYNC);
  CHECK(hostwait_pop(outer) == HOSTWAIT_INVALID);
  int elsewhere = 0;
  std::thread([&] { elsewhere = hostwait_pop(inner); }).join();
  CHECK(elsewhere == HOSTWAIT_INVALID);
  CHECK(hostwait_pop(inner) == 0);
  CHECK(hostwait_pop(inner) == HOSTWAIT_INVALID);
  CHECK(hostwait_pop(outer) == 0);
  CHECK(stats().mismatched_pops == before + 3);
}

TEST_CASE("kinds that must be armed at start say so") {
  CHECK(hostwait_push(HOSTWAIT_LOG, HOSTWAIT_POLL) == HOSTWAIT_NOT_ARMED);
  CHECK(hostwait_push(HOSTWAIT_LOG, HOSTWAIT_QUEUE_FULL | HOSTWAIT_SYNC) == HOSTWAIT_NOT_ARMED);
  CHECK(hostwait_push(HOSTWAIT_LOG, 0) == HOSTWAIT_INVALID);
  CHECK(hostwait_push(HOSTWAIT_LOG, 1u << 20) == HOSTWAIT_INVALID);
  CHECK(hostwait_push(static_cast<hostwait_action>(17), HOSTWAIT_SYNC) == HOSTWAIT_INVALID);
}

TEST_CASE("frees under error are made and are violations") {
  const hostwait_stats before = stats();
  CUdeviceptr memory = 0;
  REQUIRE(DRIVER(cuMemAlloc_v2)(&memory, 4096) == CUDA_SUCCESS);
  {
    const hostwait::guard guard{hostwait::action::error, hostwait::all};
    CHECK(DRIVER(cuMemFree_v2)(memory) == CUDA_SUCCESS);
  }
  const hostwait_stats after = stats();
  CHECK(after.violations == before.violations + 1);
  CHECK(after.refused == before.refused);
}

TEST_CASE("fail makes the call and counts a violation, waited or latent") {
  world& w = the_world();
  const hostwait_stats before = stats();
  {
    const hostwait::guard guard{hostwait::action::fail, hostwait::sync};
    CHECK(DRIVER(cuStreamSynchronize)(w.stream) == CUDA_SUCCESS);
  }
  CHECK(stats().violations == before.violations + 1);
}

TEST_CASE("waited and latent are told apart by the time inside") {
  world& w = the_world();
  const hostwait_stats before = stats();
  REQUIRE(DRIVER(hostwait_sim_hold)(w.stream) == 0);
  std::thread releaser([&] {
    DRIVER(hostwait_sim_await_waiting)(1, 10000);
    usleep(2000);
    DRIVER(hostwait_sim_release)(w.stream);
  });
  CHECK(DRIVER(cuStreamSynchronize)(w.stream) == CUDA_SUCCESS);
  releaser.join();
  const hostwait_stats after = stats();
  CHECK(after.waited == before.waited + 1);
  CHECK(after.waited_ns - before.waited_ns >= 1000000);
}

TEST_CASE("the callback sees each violation on its thread") {
  world& w = the_world();
  struct seen {
    int count = 0;
    hostwait_finding last = {};
    std::string label, call;
  } s;
  hostwait_set_callback(
      [](const hostwait_finding* finding, void* user) {
        auto* out = static_cast<seen*>(user);
        ++out->count;
        out->last = *finding;
        out->label = finding->label;
        out->call = finding->call;
      },
      &s);
  const int token = hostwait_push_label(HOSTWAIT_ERROR, HOSTWAIT_SYNC, "inner loop");
  CHECK(DRIVER(cuMemcpyHtoD_v2)(w.device, w.pageable.data(), 96) == CUDA_ERROR_NOT_PERMITTED);
  CHECK(hostwait_pop(token) == 0);
  hostwait_set_callback(nullptr, nullptr);
  CHECK(DRIVER(cuStreamSynchronize)(w.stream) == CUDA_SUCCESS);
  CHECK(s.count == 1);
  CHECK(s.label == "inner loop");
  CHECK(s.call == "cuMemcpyHtoD_v2");
  CHECK(s.last.kind == HOSTWAIT_COPY);
  CHECK(s.last.bytes == 96);
  CHECK(s.last.action == HOSTWAIT_ERROR);
  CHECK(s.last.thread_id == static_cast<std::uint64_t>(gettid()));
  hostwait_finding refused = {};
  refused.size = sizeof refused;
  CHECK(hostwait_last_refused(&refused) == 0);
  CHECK(refused.id == s.last.id);
  CHECK(std::string(refused.call) == "cuMemcpyHtoD_v2");
  int on_new_thread = 0;
  std::thread([&] { on_new_thread = hostwait_last_refused(&refused); }).join();
  CHECK(on_new_thread == HOSTWAIT_NOT_AVAILABLE);
}

namespace {

// What `hostwait set` does: writes the control entry of a live record.
void set_control(std::uint64_t actions, std::uint32_t paused) {
  const std::string path = hostwait_test::live_record().path();
  const int file = open(path.c_str(), O_RDWR);
  REQUIRE(file >= 0);
  hostwait_record_header header;
  REQUIRE(pread(file, &header, sizeof header, 0) == sizeof header);
  for (std::uint32_t i = 0; i < header.extent_count; ++i) {
    if (header.extents[i].id != HOSTWAIT_SECTION_CONTROL) continue;
    hostwait_record_control words;
    const auto at = static_cast<off_t>(header.extents[i].offset);
    REQUIRE(pread(file, &words, sizeof words, at) == sizeof words);
    words.actions = actions;
    words.paused = paused;
    ++words.generation;
    REQUIRE(pwrite(file, &words, sizeof words, at) == sizeof words);
  }
  close(file);
}

}  // namespace

TEST_CASE("the control word of a live record reaches a thread that logs") {
  world& w = the_world();
  REQUIRE(DRIVER(cuStreamSynchronize)(w.stream) == CUDA_SUCCESS);
  const unsigned kind = HOSTWAIT_KIND_STREAM_SYNC;
  set_control(std::uint64_t{HOSTWAIT_ERROR + 1} << (4 * kind), 0);
  CHECK(DRIVER(cuStreamSynchronize)(w.stream) == CUDA_ERROR_NOT_PERMITTED);
  CHECK(DRIVER(cuCtxSynchronize)() == CUDA_SUCCESS);
  set_control(0, 1);  // paused: nothing is refused, nothing recorded
  const std::uint64_t calls = stats().calls;
  CHECK(DRIVER(cuStreamSynchronize)(w.stream) == CUDA_SUCCESS);
  CHECK(DRIVER(cuStreamSynchronize)(w.stream) == CUDA_SUCCESS);
  CHECK(stats().calls == calls);
  set_control(std::uint64_t{HOSTWAIT_LOG + 1} << (4 * kind), 0);
  // A paused thread looks at the word at every call.
  CHECK(DRIVER(cuStreamSynchronize)(w.stream) == CUDA_SUCCESS);
  CHECK(stats().calls == calls + 1);
}

TEST_CASE("errno survives a recorded and a refused call") {
  world& w = the_world();
  errno = 4711;
  DRIVER(cuStreamSynchronize)(w.stream);
  const int recorded = errno;
  const hostwait::guard guard{hostwait::action::error, hostwait::sync};
  errno = 4712;
  DRIVER(cuStreamSynchronize)(w.stream);
  const int refused = errno;
  CHECK(recorded == 4711);
  CHECK(refused == 4712);
}

namespace {
volatile sig_atomic_t traps = 0;
}

TEST_CASE("trap raises SIGTRAP, then makes the call") {
  world& w = the_world();
  struct sigaction mine = {}, old = {};
  mine.sa_handler = [](int) { traps = traps + 1; };
  sigaction(SIGTRAP, &mine, &old);
  const std::uint64_t made = DRIVER(hostwait_sim_calls)("cuStreamSynchronize");
  {
    const hostwait::guard guard{hostwait::action::trap, hostwait::sync};
    CHECK(DRIVER(cuStreamSynchronize)(w.stream) == CUDA_SUCCESS);
  }
  sigaction(SIGTRAP, &old, nullptr);
  CHECK(traps == 1);
  CHECK(DRIVER(hostwait_sim_calls)("cuStreamSynchronize") == made + 1);
}

TEST_CASE("abort ends the process with SIGABRT and one line", "[native]") {
  int pipe_ends[2];
  REQUIRE(pipe(pipe_ends) == 0);
  const pid_t child = fork();
  if (child == 0) {
    // The line goes to the stderr of start-up only, so the child starts anew.
    dup2(pipe_ends[1], STDERR_FILENO);
    close(pipe_ends[0]);
    setenv("HOSTWAIT_TEST_ABORT", "1", 1);
    execl("/proc/self/exe", "policy_test", "abort helper", nullptr);
    _exit(9);
  }
  close(pipe_ends[1]);
  std::string text;
  char buffer[512];
  for (ssize_t n; (n = read(pipe_ends[0], buffer, sizeof buffer)) > 0;) text.append(buffer, n);
  close(pipe_ends[0]);
  int status = 0;
  waitpid(child, &status, 0);
  REQUIRE(WIFSIGNALED(status));
  CHECK(WTERMSIG(status) == SIGABRT);
  CHECK_THAT(text, ContainsSubstring("hostwait: abort: cuStreamSynchronize would wait"));
}

TEST_CASE("abort helper", "[.]") {
  if (getenv("HOSTWAIT_TEST_ABORT") == nullptr) return;
  signal(SIGABRT, SIG_DFL);
  world& w = the_world();
  signal(SIGABRT, SIG_DFL);
  const hostwait::guard guard{hostwait::action::abort, hostwait::sync};
  signal(SIGABRT, SIG_DFL);
  DRIVER(cuStreamSynchronize)(w.stream);
}
