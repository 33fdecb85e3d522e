// SPDX-License-Identifier: Apache-2.0
// Copyright The hostwait authors
// What an intercepted call costs over the driver's own function. One process holds both pointers,
// so that every figure is a difference within one run. The options (stacks=0, …) come from
// HOSTWAIT_OPTIONS; tests/bench/figures.py runs this with each set and puts the figures together.
#include <benchmark/benchmark.h>
#include <dlfcn.h>
#include <hostwait/hostwait.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

#include "driver.hpp"

namespace hostwait::bench {
namespace {

// A wait by name on an idle stream: the shortest call that is recorded.
constexpr const char* waiting_call = "cuStreamSynchronize";
// An enqueue call: its row is wrapped only where queue_full is armed.
constexpr const char* unarmed_call = "cuEventRecord";
// A query: wrapped for the captures that it can break, and passed on while none is open.
constexpr const char* query_call = "cuStreamQuery";

stream_call program_wait, own_wait;

void attach() {
  // Each benchmark thread needs the context. Setting it again costs nothing that is measured.
  thread_local bool attached = false;
  if (attached) return;
  CUdevice device;
  CUcontext context;
  reinterpret_cast<decltype(&cuDeviceGet)>(drivers_own("cuDeviceGet"))(&device, 0);
  reinterpret_cast<decltype(&cuDevicePrimaryCtxRetain)>(drivers_own("cuDevicePrimaryCtxRetain"))(
      &context, device);
  reinterpret_cast<decltype(&cuCtxSetCurrent)>(drivers_own("cuCtxSetCurrent"))(context);
  attached = true;
}

void clock_read(benchmark::State& state) {
  for (auto _ : state) benchmark::DoNotOptimize(now_ns());
}

void own(benchmark::State& state) {
  attach();
  const int depth = static_cast<int>(state.range(0));
  for (auto _ : state) benchmark::DoNotOptimize(call_at_depth(own_wait, idle_stream(), depth));
}

void through(benchmark::State& state) {
  attach();
  const int depth = static_cast<int>(state.range(0));
  for (auto _ : state) benchmark::DoNotOptimize(call_at_depth(program_wait, idle_stream(), depth));
}

// The time of one call below as many functions, each of its own: frames of one recursive function
// would share what a walk has to look up.
template <int Functions>
__attribute__((noinline)) std::uint64_t timed_below(stream_call call) {
  volatile std::uint64_t ns = timed_below<Functions - 1>(call);
  return ns;
}
template <>
__attribute__((noinline)) std::uint64_t timed_below<0>(stream_call call) {
  const std::uint64_t begin = now_ns();
  benchmark::DoNotOptimize(call(idle_stream()));
  return now_ns() - begin;
}

// A program that waits once a step has used its caches for the step: 16 MiB of it here.
void cold(benchmark::State& state, stream_call call) {
  attach();
  static std::vector<char> others(16 << 20);
  for (auto _ : state) {
    for (std::size_t i = 0; i < others.size(); i += 64) ++others[i];
    state.SetIterationTime(static_cast<double>(timed_below<20>(call)) * 1e-9);
  }
}
void cold_own(benchmark::State& state) {
  cold(state, own_wait);
}
void cold_through(benchmark::State& state) {
  cold(state, program_wait);
}

void allowed(benchmark::State& state) {
  attach();
  const int token = hostwait_push(HOSTWAIT_ALLOW, HOSTWAIT_ALL);
  for (auto _ : state) benchmark::DoNotOptimize(program_wait(idle_stream()));
  hostwait_pop(token);
}

void push_pop(benchmark::State& state) {
  for (auto _ : state) {
    const int token = hostwait_push(HOSTWAIT_ERROR, HOSTWAIT_SYNC);
    benchmark::DoNotOptimize(token);
    hostwait_pop(token);
  }
}

void call_directly(benchmark::State& state, void* function) {
  attach();
  const auto call = reinterpret_cast<stream_call>(function);
  for (auto _ : state) benchmark::DoNotOptimize(call(idle_stream()));
}

void own_direct(benchmark::State& state) {
  call_directly(state, drivers_own(waiting_call));
}

void record_directly(benchmark::State& state, void* function) {
  attach();
  const auto call = reinterpret_cast<decltype(&cuEventRecord)>(function);
  CUevent event = nullptr;
  reinterpret_cast<decltype(&cuEventCreate)>(drivers_own("cuEventCreate"))(&event,
                                                                           CU_EVENT_DISABLE_TIMING);
  for (auto _ : state) benchmark::DoNotOptimize(call(event, CU_STREAM_PER_THREAD));
}
void unarmed_own(benchmark::State& state) {
  record_directly(state, drivers_own(unarmed_call));
}
void unarmed_through(benchmark::State& state) {
  record_directly(state, handed_out(unarmed_call));
}
void query_own(benchmark::State& state) {
  call_directly(state, drivers_own(query_call));
}
void query_through(benchmark::State& state) {
  call_directly(state, handed_out(query_call));
}

// Copies of no bytes: judged like any other, the driver asked about both ends, and nothing queued.
struct copy_ends {
  CUdeviceptr from = 0, to = 0;
};
copy_ends ends_of(const std::string& kind) {
  attach();
  static CUdeviceptr device = 0, managed = 0;
  static void* pinned = nullptr;
  static char pageable[4096];
  if (device == 0) {
    reinterpret_cast<decltype(&cuMemAlloc)>(drivers_own("cuMemAlloc_v2"))(&device, 8192);
    reinterpret_cast<decltype(&cuMemAllocManaged)>(drivers_own("cuMemAllocManaged"))(
        &managed, 4096, CU_MEM_ATTACH_GLOBAL);
    reinterpret_cast<decltype(&cuMemHostAlloc)>(drivers_own("cuMemHostAlloc"))(&pinned, 4096, 0);
  }
  if (kind == "pageable") return {reinterpret_cast<CUdeviceptr>(pageable), device};
  if (kind == "pinned") return {reinterpret_cast<CUdeviceptr>(pinned), device};
  if (kind == "managed") return {managed, device};
  return {device + 4096, device};
}
void copy_directly(benchmark::State& state, void* function, const std::string& kind) {
  const copy_ends ends = ends_of(kind);
  const auto call = reinterpret_cast<decltype(&cuMemcpyAsync)>(function);
  for (auto _ : state) benchmark::DoNotOptimize(call(ends.to, ends.from, 0, idle_stream()));
}
// The direction stands in the name: nobody is asked.
void named_copy_directly(benchmark::State& state, void* function) {
  const copy_ends ends = ends_of("pageable");
  const auto call = reinterpret_cast<decltype(&cuMemcpyHtoD)>(function);
  for (auto _ : state)
    benchmark::DoNotOptimize(call(ends.to, reinterpret_cast<const void*>(ends.from), 0));
}

void register_copies() {
  for (const char* kind : {"pageable", "pinned", "managed", "device"}) {
    const std::string name = kind;
    benchmark::RegisterBenchmark(("copy_own_" + name).c_str(), [name](benchmark::State& state) {
      copy_directly(state, drivers_own("cuMemcpyAsync"), name);
    });
    benchmark::RegisterBenchmark(("copy_through_" + name).c_str(), [name](benchmark::State& state) {
      copy_directly(state, handed_out("cuMemcpyAsync"), name);
    });
  }
  benchmark::RegisterBenchmark("copy_own_named", [](benchmark::State& state) {
    named_copy_directly(state, drivers_own("cuMemcpyHtoD_v2"));
  });
  benchmark::RegisterBenchmark("copy_through_named", [](benchmark::State& state) {
    named_copy_directly(state, handed_out("cuMemcpyHtoD_v2"));
  });
}

// A CUPTI subscriber with callbacks on both API domains, for scale. The library is tests/gpu's.
void under_cupti(benchmark::State& state) {
  void* const library = dlopen(std::getenv("HOSTWAIT_BENCH_CUPTI"), RTLD_NOW);
  using switching = int (*)();
  const auto on =
      library ? reinterpret_cast<switching>(dlsym(library, "cupti_count_subscribe")) : nullptr;
  if (on == nullptr || on() != 0) {
    state.SkipWithError("CUPTI cannot subscribe");
    return;
  }
  attach();
  for (auto _ : state) benchmark::DoNotOptimize(own_wait(idle_stream()));
  reinterpret_cast<switching>(dlsym(library, "cupti_count_unsubscribe"))();
}

int run(int argc, char** argv) {
  start_driver();
  own_wait = reinterpret_cast<stream_call>(drivers_own(waiting_call));
  program_wait = reinterpret_cast<stream_call>(handed_out(waiting_call));
  if (own_wait == nullptr || program_wait == nullptr) {
    std::fprintf(stderr, "bench: libcuda does not export %s\n", waiting_call);
    return 1;
  }
  if (argc > 1 && std::strcmp(argv[1], "--latency") == 0)
    return print_latencies(waiting_call, argc > 2 ? std::atoi(argv[2]) : 200000);
  const bool shim = hostwait_present() != 0;
  if (shim == (own_wait == program_wait)) {
    std::fprintf(stderr, "bench: %s %s\n", waiting_call,
                 shim ? "is not intercepted under the preload" : "is not the driver's own");
    return 1;
  }
  // The program holds the driver's own pointer: the budget of a call that is not armed is zero.
  benchmark::AddCustomContext("unarmed_same_pointer",
                              handed_out(unarmed_call) == drivers_own(unarmed_call) ? "1" : "0");
  benchmark::AddCustomContext("shim", shim ? "1" : "0");
  benchmark::RegisterBenchmark("clock", clock_read);
  benchmark::RegisterBenchmark("own_direct", own_direct);
  benchmark::RegisterBenchmark("own", own)->Arg(0)->Arg(20);
  benchmark::RegisterBenchmark("through", through)->Arg(0)->Arg(20);
  benchmark::RegisterBenchmark("own", own)->Arg(0)->Threads(2)->UseRealTime();
  benchmark::RegisterBenchmark("through", through)->Arg(0)->Threads(2)->UseRealTime();
  benchmark::RegisterBenchmark("cold_own", cold_own)->UseManualTime()->Iterations(100);
  benchmark::RegisterBenchmark("cold_through", cold_through)->UseManualTime()->Iterations(100);
  benchmark::RegisterBenchmark("unarmed_own", unarmed_own);
  benchmark::RegisterBenchmark("unarmed_through", unarmed_through);
  benchmark::RegisterBenchmark("query_own", query_own);
  benchmark::RegisterBenchmark("query_through", query_through);
  register_copies();
  if (shim) {
    benchmark::RegisterBenchmark("allowed", allowed);
    benchmark::RegisterBenchmark("push_pop", push_pop);
  }
  if (std::getenv("HOSTWAIT_BENCH_CUPTI") != nullptr)
    benchmark::RegisterBenchmark("under_cupti", under_cupti);
  benchmark::Initialize(&argc, argv);
  benchmark::RunSpecifiedBenchmarks();
  benchmark::Shutdown();
  return 0;
}

}  // namespace
}  // namespace hostwait::bench

int main(int argc, char** argv) {
  return hostwait::bench::run(argc, argv);
}
