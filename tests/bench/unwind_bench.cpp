// SPDX-License-Identifier: Apache-2.0
// Copyright The hostwait authors
// Twenty native frames: our walk, libgcc's _Unwind_Backtrace and libunwind's unw_backtrace, from
// the same place in one run.
#include <benchmark/benchmark.h>
#include <unwind.h>

#include <array>
#include <cstdint>

#include "../unit/record_resolve_double.hpp"
#include "unwind.hpp"

#if defined(HOSTWAIT_BENCH_LIBUNWIND)
extern "C" int unw_backtrace(void** addresses, int size);
#endif

namespace {

constexpr unsigned frames = 20;

using measured = void (*)(benchmark::State&);

// Thirty functions with frames of thirty sizes below the measured loop.
template <int Depth>
__attribute__((noinline)) int call_from_below(measured loop, benchmark::State& state) {
  volatile char room[16 + 24 * Depth];
  room[Depth] = 1;
  if constexpr (Depth == 0) {
    loop(state);
    return room[0];
  } else {
    return call_from_below<Depth - 1>(loop, state) + room[Depth];
  }
}

__attribute__((always_inline)) inline hostwait::unwind::registers here() {
  hostwait::unwind::registers now{};
#if defined(__x86_64__)
  now.ip = reinterpret_cast<std::uintptr_t>(__builtin_return_address(0));
  now.sp = reinterpret_cast<std::uintptr_t>(__builtin_dwarf_cfa());
  now.bp = *static_cast<std::uintptr_t*>(__builtin_frame_address(0));
#else
  const auto* record = static_cast<std::uintptr_t*>(__builtin_frame_address(0));
  now.ip = record[1];
  now.bp = record[0];
  now.sp = reinterpret_cast<std::uintptr_t>(__builtin_dwarf_cfa());
#endif
  return now;
}

__attribute__((noinline)) unsigned take_ours(std::uintptr_t* out) {
  return hostwait::unwind::capture(here(), out, frames);
}

void loop_ours(benchmark::State& state) {
  std::array<std::uintptr_t, frames> out;
  unsigned depth = 0;
  for (auto _ : state) {
    depth = take_ours(out.data());
    benchmark::ClobberMemory();
  }
  if (depth != frames) state.SkipWithError("the walk ended early");
}

void loop_ours_cold(benchmark::State& state) {
  std::array<std::uintptr_t, frames> out;
  for (auto _ : state) {
    hostwait::test::next_loader_generation();  // every rule is found anew
    benchmark::DoNotOptimize(take_ours(out.data()));
  }
}

struct taken {
  std::array<std::uintptr_t, frames> at;
  unsigned count;
};

void loop_libgcc(benchmark::State& state) {
  taken out;
  for (auto _ : state) {
    out.count = 0;
    _Unwind_Backtrace(
        [](_Unwind_Context* context, void* data) {
          auto* to = static_cast<taken*>(data);
          if (to->count == frames) return _URC_END_OF_STACK;
          to->at[to->count++] = _Unwind_GetIP(context);
          return _URC_NO_REASON;
        },
        &out);
    benchmark::ClobberMemory();
  }
  if (out.count != frames) state.SkipWithError("the walk ended early");
}

void ours(benchmark::State& state) {
  call_from_below<30>(loop_ours, state);
}
void ours_cold(benchmark::State& state) {
  call_from_below<30>(loop_ours_cold, state);
}
void libgcc(benchmark::State& state) {
  call_from_below<30>(loop_libgcc, state);
}

BENCHMARK(ours);
BENCHMARK(ours_cold);
BENCHMARK(libgcc);

#if defined(HOSTWAIT_BENCH_LIBUNWIND)
void loop_libunwind(benchmark::State& state) {
  std::array<void*, frames> out;
  int depth = 0;
  for (auto _ : state) {
    depth = unw_backtrace(out.data(), frames);
    benchmark::ClobberMemory();
  }
  if (depth != static_cast<int>(frames)) state.SkipWithError("the walk ended early");
}
void libunwind(benchmark::State& state) {
  call_from_below<30>(loop_libunwind, state);
}
BENCHMARK(libunwind);
#endif

}  // namespace

BENCHMARK_MAIN();
