// SPDX-License-Identifier: Apache-2.0
// Copyright The hostwait authors
// Calls that break a stream capture: both threads and both places in the record, in three modes.
#include <hostwait/hostwait.h>
#include <pthread.h>
#include <sys/wait.h>
#include <unistd.h>

#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "support/catch.hpp"
#include "support/driver.hpp"
#include "support/live_record.hpp"
#include "support/stats.hpp"

namespace {

constexpr auto global = CU_STREAM_CAPTURE_MODE_GLOBAL;
constexpr auto thread_local_mode = CU_STREAM_CAPTURE_MODE_THREAD_LOCAL;
constexpr auto relaxed = CU_STREAM_CAPTURE_MODE_RELAXED;

struct world {
  CUcontext context = hostwait_test::first_context();
  CUstream captured = nullptr, other = nullptr, blocking = nullptr;
  CUevent event = nullptr;
  CUdeviceptr device = 0;
  world() {
    REQUIRE(DRIVER(cuStreamCreate)(&captured, CU_STREAM_NON_BLOCKING) == CUDA_SUCCESS);
    REQUIRE(DRIVER(cuStreamCreate)(&other, CU_STREAM_NON_BLOCKING) == CUDA_SUCCESS);
    REQUIRE(DRIVER(cuStreamCreate)(&blocking, CU_STREAM_DEFAULT) == CUDA_SUCCESS);
    REQUIRE(DRIVER(cuEventCreate)(&event, CU_EVENT_DISABLE_TIMING) == CUDA_SUCCESS);
    REQUIRE(DRIVER(cuMemAlloc_v2)(&device, 4096) == CUDA_SUCCESS);
  }
};
world& the_world() {
  static world w;
  return w;
}

// Entries and their counts so far; what a step adds is the difference.
std::vector<hostwait_record_capture> entries() {
  const hostwait::record_file record = hostwait_test::live_record();
  std::vector<hostwait_record_capture> all;
  record.for_each(HOSTWAIT_SECTION_CAPTURES,
                  [&](std::uint32_t i) { all.push_back(record.capture(i)); });
  return all;
}

std::vector<hostwait_record_capture> added_by(const std::function<void()>& step) {
  const auto before = entries();
  step();
  std::vector<hostwait_record_capture> out;
  const auto after = entries();
  for (std::size_t i = 0; i < after.size(); ++i) {
    hostwait_record_capture one = after[i];
    if (i < before.size()) {
      one.count -= before[i].count;
      one.violations -= before[i].violations;
    }
    if (one.count != 0) out.push_back(one);
  }
  return out;
}

std::string call_of(std::uint32_t site) {
  const hostwait::record_file record = hostwait_test::live_record();
  if (site == HOSTWAIT_CAPTURE_NO_SITE) return "";
  return std::string(record.string(record.call(record.site(site).call).name));
}
bool has_stack(std::uint32_t site) {
  return site != HOSTWAIT_CAPTURE_NO_SITE && hostwait_test::live_record().site(site).native != 0;
}

void on_thread(const char* name, const std::function<void()>& run) {
  std::thread([&] {
    pthread_setname_np(pthread_self(), name);
    DRIVER(cuCtxSetCurrent)(the_world().context);
    run();
  }).join();
}

CUresult begin(CUstream stream, CUstreamCaptureMode mode) {
  return DRIVER(cuStreamBeginCapture_v2)(stream, mode);
}
CUresult end(CUstream stream) {
  CUgraph graph = nullptr;
  return DRIVER(cuStreamEndCapture)(stream, &graph);
}

// A capture by this thread, the call on another thread meanwhile; what it broke.
std::vector<hostwait_record_capture> broken_from_elsewhere(
    CUstreamCaptureMode mode, const std::function<CUresult()>& call,
    CUstreamCaptureMode thread_mode = global) {
  CUresult ended = CUDA_ERROR_UNKNOWN;
  const auto found = added_by([&] {
    REQUIRE(begin(the_world().captured, mode) == CUDA_SUCCESS);
    on_thread("breaker", [&] {
      CUstreamCaptureMode exchanged = thread_mode;
      DRIVER(cuThreadExchangeStreamCaptureMode)(&exchanged);
      call();
    });
    ended = end(the_world().captured);
  });
  CHECK((ended == CUDA_SUCCESS) == found.empty());
  return found;
}

}  // namespace

TEST_CASE("a query on another thread breaks a global capture: both threads and places") {
  world& w = the_world();
  const auto found = broken_from_elsewhere(global, [&] { return DRIVER(cuStreamQuery)(w.other); });
  REQUIRE(found.size() == 1);
  const hostwait_record_capture& one = found[0];
  CHECK(one.count == 1);
  CHECK(one.violations == 0);
  CHECK(one.result == CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
  CHECK(one.flags == 0);
  CHECK(one.mode == global);
  CHECK(one.stream == reinterpret_cast<std::uint64_t>(w.captured));
  CHECK(one.begin_tid == static_cast<std::uint32_t>(gettid()));
  CHECK(one.tid != one.begin_tid);
  CHECK(std::string(one.thread) == "breaker");
  CHECK(one.mono_ns > one.begin_mono_ns);
  CHECK(call_of(one.begin_site) == "cuStreamBeginCapture_v2");
  CHECK(call_of(one.site) == "cuStreamQuery");
  CHECK(has_stack(one.begin_site));
  CHECK(has_stack(one.site));
}

TEST_CASE("from another thread only a global capture is broken, unless the streams are the same") {
  world& w = the_world();
  const auto wait_for = [](CUstream s) { return [s] { return DRIVER(cuStreamSynchronize)(s); }; };
  CHECK(broken_from_elsewhere(global, wait_for(w.other)).size() == 1);
  CHECK(broken_from_elsewhere(thread_local_mode, wait_for(w.other)).empty());
  CHECK(broken_from_elsewhere(relaxed, wait_for(w.other)).empty());
  CHECK(broken_from_elsewhere(global, wait_for(w.other), relaxed).empty());
  CHECK(broken_from_elsewhere(global, wait_for(w.other), thread_local_mode).empty());
  for (const auto mode : {global, thread_local_mode, relaxed}) {
    INFO(mode);
    const auto found = broken_from_elsewhere(mode, wait_for(w.captured));
    REQUIRE(found.size() == 1);
    CHECK(found[0].flags == HOSTWAIT_CAPTURE_ON_STREAM);
    CHECK(found[0].mode == static_cast<std::uint32_t>(mode));
    CHECK(broken_from_elsewhere(mode, [] { return DRIVER(cuCtxSynchronize)(); }).size() == 1);
  }
  CHECK(broken_from_elsewhere(global, [&] { return DRIVER(cuEventQuery)(w.event); }).size() == 1);
  CHECK(broken_from_elsewhere(global, [] {
          CUdeviceptr memory = 0;
          return DRIVER(cuMemAlloc_v2)(&memory, 64);
        }).size() == 1);
}

TEST_CASE("the capturing thread breaks its own capture") {
  world& w = the_world();
  for (const auto mode : {global, thread_local_mode, relaxed}) {
    const auto found = added_by([&] {
      REQUIRE(begin(w.captured, mode) == CUDA_SUCCESS);
      DRIVER(cuStreamSynchronize)(w.other);
      end(w.captured);
    });
    CHECK(found.size() == (mode == relaxed ? 0 : 1));
    if (!found.empty()) CHECK(found[0].tid == found[0].begin_tid);
  }
}

TEST_CASE("the first call that broke a capture is the one that is told") {
  world& w = the_world();
  const auto found = broken_from_elsewhere(global, [&] {
    DRIVER(cuStreamQuery)(w.other);
    DRIVER(cuStreamQuery)(w.captured);
    return DRIVER(cuCtxSynchronize)();
  });
  REQUIRE(found.size() == 1);
  CHECK(call_of(found[0].site) == "cuStreamQuery");
}

TEST_CASE("work on the legacy stream breaks the capture of a blocking stream") {
  world& w = the_world();
  char host[16];
  const auto copy_during = [&](CUstream stream) {
    return added_by([&] {
      REQUIRE(begin(stream, relaxed) == CUDA_SUCCESS);
      DRIVER(cuMemcpyDtoH_v2)(host, w.device, sizeof host);
      end(stream);
    });
  };
  CHECK(copy_during(w.captured).empty());
  const auto found = copy_during(w.blocking);
  REQUIRE(found.size() == 1);
  CHECK(found[0].result == CUDA_ERROR_STREAM_CAPTURE_IMPLICIT);
}

TEST_CASE("of several open captures the possible ones are told as such") {
  world& w = the_world();
  char host[16];
  const auto found = added_by([&] {
    REQUIRE(begin(w.captured, relaxed) == CUDA_SUCCESS);
    REQUIRE(begin(w.blocking, relaxed) == CUDA_SUCCESS);
    DRIVER(cuMemcpyDtoH_v2)(host, w.device, sizeof host);
    end(w.blocking);
    CHECK(end(w.captured) == CUDA_SUCCESS);
  });
  REQUIRE(found.size() == 2);
  for (const hostwait_record_capture& one : found) CHECK(one.flags == HOSTWAIT_CAPTURE_POSSIBLE);
}

TEST_CASE("ends: by another thread, of another stream, of a broken capture") {
  world& w = the_world();
  const auto found = added_by([&] {
    REQUIRE(begin(w.captured, relaxed) == CUDA_SUCCESS);
    on_thread("ender", [&] { CHECK(end(w.captured) == CUDA_SUCCESS); });
    CHECK(DRIVER(cuCtxSynchronize)() == CUDA_SUCCESS);

    REQUIRE(begin(w.captured, global) == CUDA_SUCCESS);
    on_thread("ender", [&] { CHECK(end(w.captured) == CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD); });
    // It is still open: this breaks it.
    CHECK(DRIVER(cuStreamQuery)(w.other) == CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
    CHECK(end(w.captured) == CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
    CHECK(DRIVER(cuCtxSynchronize)() == CUDA_SUCCESS);
  });
  REQUIRE(found.size() == 1);
  CHECK(call_of(found[0].site) == "cuStreamQuery");
}

TEST_CASE("a begin that failed leaves nothing open") {
  world& w = the_world();
  const auto found = added_by([&] {
    CHECK(begin(nullptr, global) == CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
    REQUIRE(begin(w.captured, global) == CUDA_SUCCESS);
    CHECK(begin(w.captured, global) == CUDA_ERROR_ILLEGAL_STATE);
    CHECK(end(w.captured) == CUDA_SUCCESS);
    CHECK(DRIVER(cuStreamQuery)(w.other) == CUDA_SUCCESS);
  });
  CHECK(found.empty());
}

TEST_CASE("a capture into a graph, and one of a per-thread default stream") {
  world& w = the_world();
  CUgraph graph = nullptr;
  REQUIRE(DRIVER(cuGraphCreate)(&graph, 0) == CUDA_SUCCESS);
  const auto into = added_by([&] {
    REQUIRE(DRIVER(cuStreamBeginCaptureToGraph)(w.captured, graph, nullptr, nullptr, 0,
                                                thread_local_mode) == CUDA_SUCCESS);
    DRIVER(cuStreamSynchronize)(w.other);
    end(w.captured);
  });
  REQUIRE(into.size() == 1);
  CHECK(into[0].mode == thread_local_mode);
  CHECK(call_of(into[0].begin_site) == "cuStreamBeginCaptureToGraph");
  const auto own = added_by([&] {
    REQUIRE(begin(CU_STREAM_PER_THREAD, relaxed) == CUDA_SUCCESS);
    on_thread("other", [&] {
      // Its own default stream, not ours.
      CHECK(DRIVER(cuStreamSynchronize)(CU_STREAM_PER_THREAD) == CUDA_SUCCESS);
    });
    DRIVER(cuStreamSynchronize)(CU_STREAM_PER_THREAD);
    end(CU_STREAM_PER_THREAD);
  });
  REQUIRE(own.size() == 1);
  CHECK(own[0].flags == HOSTWAIT_CAPTURE_ON_STREAM);
}

TEST_CASE("under fail it is a violation, under allow nothing, under error it is not made") {
  world& w = the_world();
  const auto wait_under = [&](hostwait_action action) {
    return broken_from_elsewhere(global, [&, action] {
      const int token = hostwait_push(action, HOSTWAIT_SYNC);
      const CUresult result = DRIVER(cuStreamSynchronize)(w.other);
      hostwait_pop(token);
      return result;
    });
  };
  const auto failed = wait_under(HOSTWAIT_FAIL);
  REQUIRE(failed.size() == 1);
  CHECK(failed[0].violations == 1);

  const auto refused = added_by([&] {
    REQUIRE(begin(w.captured, global) == CUDA_SUCCESS);
    on_thread("refused", [&] {
      const int token = hostwait_push(HOSTWAIT_ERROR, HOSTWAIT_SYNC);
      CHECK(DRIVER(cuStreamSynchronize)(w.other) == CUDA_ERROR_NOT_PERMITTED);
      hostwait_pop(token);
    });
    CHECK(end(w.captured) == CUDA_SUCCESS);  // and so it lived
  });
  REQUIRE(refused.size() == 1);
  CHECK(refused[0].flags == HOSTWAIT_CAPTURE_REFUSED);
  CHECK(refused[0].result == 0);

  const auto allowed = added_by([&] {
    REQUIRE(begin(w.captured, global) == CUDA_SUCCESS);
    on_thread("allowed", [&] {
      const int token = hostwait_push(HOSTWAIT_ALLOW, HOSTWAIT_SYNC);
      DRIVER(cuStreamSynchronize)(w.other);
      hostwait_pop(token);
    });
    CHECK(end(w.captured) == CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
  });
  CHECK(allowed.empty());
}

TEST_CASE("captures of the parent are none of a forked child", "[native]") {
  world& w = the_world();
  REQUIRE(begin(w.captured, global) == CUDA_SUCCESS);
  const pid_t child = fork();
  if (child == 0) {
    // The driver refuses everything here; what is looked at is that no capture is believed open.
    DRIVER(cuStreamQuery)(w.other);
    DRIVER(cuStreamSynchronize)(w.other);
    std::size_t told = 1;
    try {
      told = entries().size();
    } catch (...) {
    }
    _exit(told == 0 ? 0 : 1);
  }
  int status = 0;
  REQUIRE(waitpid(child, &status, 0) == child);
  CHECK(WIFEXITED(status));
  CHECK(WEXITSTATUS(status) == 0);
  CHECK(end(w.captured) == CUDA_SUCCESS);
}

TEST_CASE("queries outside captures are not recorded") {
  world& w = the_world();
  const std::uint64_t before = hostwait_test::stats().calls;
  for (int i = 0; i < 100; ++i) CHECK(DRIVER(cuStreamQuery)(w.other) == CUDA_SUCCESS);
  CHECK(hostwait_test::stats().calls == before);
}
