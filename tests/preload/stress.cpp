// SPDX-License-Identifier: Apache-2.0
// Copyright The hostwait authors
// Sixteen threads at a time wait from stacks of many depths and shapes, under labels and in ranges,
// and make place for new threads all the while. At the end the record has every call, and no more
// bytes than it may have. HOSTWAIT_STRESS_WAITS sets the number of waits.
#include <cuda.h>
#include <hostwait/hostwait.h>
#include <pthread.h>

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <thread>
#include <vector>

#include "support/driver.hpp"
#include "support/live_record.hpp"

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr long default_waits = 100000;
#else
constexpr long default_waits = 1000000;
#endif

namespace {

constexpr int threads_at_a_time = 16;
constexpr long waits_of_a_thread = 500;
constexpr int deepest = 300;  // far beyond what a site keeps

CUcontext context;
CUresult (*synchronize)(CUstream);
CUresult (*set_current)(CUcontext);
std::atomic<long> failures{0};

struct random_numbers {
  std::uint32_t state;
  std::uint32_t next() {
    state ^= state << 13;
    state ^= state >> 17;
    return state ^= state << 5;
  }
};

// Two functions call each other in an order that the bits of `shape` give: many different stacks.
__attribute__((noinline)) int left(int depth, std::uint32_t shape);
__attribute__((noinline)) int right(int depth, std::uint32_t shape);
int deeper(int depth, std::uint32_t shape) {
  if (depth == 0) return synchronize(nullptr) == CUDA_SUCCESS ? 0 : 1;
  const std::uint32_t rest = shape >> 1 | shape << 31;
  return (shape & 1) != 0 ? left(depth - 1, rest) : right(depth - 1, rest);
}
int left(int depth, std::uint32_t shape) {
  volatile char frame[32] = {static_cast<char>(depth)};
  return deeper(depth, shape) + frame[1];
}
int right(int depth, std::uint32_t shape) {
  volatile char frame[96] = {static_cast<char>(depth)};
  return deeper(depth, shape) + frame[2];
}

void work(std::uint32_t seed, long waits) {
  if (set_current(context) != CUDA_SUCCESS) failures.fetch_add(1);
  random_numbers random{seed * 2654435761u + 1};
  char name[16];
  std::snprintf(name, sizeof name, "stress %u", seed % 40);
  pthread_setname_np(pthread_self(), name);
  for (long i = 0; i < waits; ++i) {
    const std::uint32_t dice = random.next();
    const int depth = dice % 64 == 0 ? deepest : static_cast<int>(dice >> 8 & 15);
    const std::uint32_t shape = random.next() & 7;
    if (dice % 16 == 0) {
      char label[24];
      std::snprintf(label, sizeof label, "label %u", dice >> 4 & 3);
      const int token = hostwait_push_label(HOSTWAIT_LOG, HOSTWAIT_ALL, label);
      failures.fetch_add(left(depth, shape));
      if (hostwait_pop(token) != 0) failures.fetch_add(1);
    } else {
      failures.fetch_add(right(depth, shape));
    }
  }
}

int expect(bool good, const char* what, unsigned long long a, unsigned long long b) {
  std::printf("%s %s: %llu, %llu\n", good ? "PASS" : "FAIL", what, a, b);
  return good ? 0 : 1;
}

}  // namespace

int main() {
  if (hostwait_present() == 0) {
    std::puts("FAIL the preloaded library is not in this process");
    return 1;
  }
  const char* wanted = std::getenv("HOSTWAIT_STRESS_WAITS");
  const long waits = wanted != nullptr ? std::atol(wanted) : default_waits;
  if (DRIVER(cuInit)(0) != CUDA_SUCCESS ||
      DRIVER(cuDevicePrimaryCtxRetain)(&context, 0) != CUDA_SUCCESS)
    return 3;
  synchronize = DRIVER(cuStreamSynchronize);
  set_current = DRIVER(cuCtxSetCurrent);

  std::atomic<long> left_over{waits};
  std::atomic<std::uint32_t> started{0};
  std::vector<std::thread> keepers;
  for (int i = 0; i < threads_at_a_time; ++i)
    keepers.emplace_back([&] {
      for (;;) {
        const long taken = left_over.fetch_sub(waits_of_a_thread);
        if (taken <= 0) return;
        const std::uint32_t seed = started.fetch_add(1) + 1;
        std::thread(work, seed, taken < waits_of_a_thread ? taken : waits_of_a_thread).join();
      }
    });
  for (std::thread& each : keepers) each.join();

  const hostwait::record_file record = hostwait_test::live_record();
  unsigned long long counted = 0, sites = 0;
  hostwait_test::each_counter(record, [&](const auto& c, const auto& site) {
    // A thread that meets another one at the lock is counted at "other".
    if ((site.flags & HOSTWAIT_SITE_OTHER) != 0 ||
        record.string(record.call(site.call).name).starts_with("cuStreamSynchronize"))
      counted += c.calls;
  });
  record.for_each(HOSTWAIT_SECTION_SITES, [&](std::uint32_t) { ++sites; });
  int bad = expect(failures.load() == 0, "calls and frames went well", failures.load(), 0);
  bad += expect(counted == static_cast<unsigned long long>(waits), "calls counted, calls made",
                counted, static_cast<unsigned long long>(waits));
  bad += expect(sites > 50, "sites told apart", sites, started.load());
  constexpr unsigned long long bound = 4 << 20;
  bad += expect(record.header().file_bytes <= bound, "bytes, bound", record.header().file_bytes,
                bound);
  bad += expect(!record.has(HOSTWAIT_RECORD_FULL), "not full; dropped sites, calls that met a lock",
                record.header().dropped_sites, record.header().unseen_locks);
  return bad;
}
