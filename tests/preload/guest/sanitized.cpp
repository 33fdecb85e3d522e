// SPDX-License-Identifier: Apache-2.0
// Copyright The hostwait authors
// A host for a sanitizer: threads, memory, exceptions and calls; with a word, a mistake that the
// sanitizer must still find.
#include <hostwait/hostwait.h>

#include <memory>
#include <stdexcept>
#include <thread>
#include <vector>

#include "guest.h"

namespace {

int shared_number = 0;

int use_after_free() {
  auto number = std::make_unique<volatile int>(1);
  volatile int* kept = number.get();
  number.reset();
  return *kept;
}

int race() {
  std::thread other([] { ++shared_number; });
  ++shared_number;
  other.join();
  return shared_number;
}

int overflow(int by) {
  volatile int number = 0x7fffffff;
  return number + by;
}

}  // namespace

int main(int argc, char** argv) {
  guest_begin();
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([] {
      guest_here();
      const int token = hostwait_push(HOSTWAIT_LOG, HOSTWAIT_SYNC);
      for (int i = 0; i < 100; ++i) {
        std::vector<int> some(100 + static_cast<std::size_t>(i));
        guest_wait();
      }
      hostwait_pop(token);
    });
  }
  for (std::thread& thread : threads) thread.join();
  try {
    guest_wait();
    throw std::runtime_error("caught");
  } catch (const std::runtime_error& error) {
    std::printf("%s\n", error.what());
  }
  std::fflush(stdout);
  const char* mistake = argc > 1 ? argv[1] : "";
  if (strcmp(mistake, "address") == 0) return use_after_free();
  if (strcmp(mistake, "thread") == 0) return race();
  if (strcmp(mistake, "undefined") == 0) return overflow(argc) == 0;
  return 0;
}
