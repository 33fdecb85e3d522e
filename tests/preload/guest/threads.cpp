// SPDX-License-Identifier: Apache-2.0
// Copyright The hostwait authors
// Threads in every shape, on the simulated driver: threads SCENARIO [NUMBER]. Prints what it sees
// of its own calls; the tests read the record besides.
#include <hostwait/hostwait.h>
#include <limits.h>
#include <pthread.h>
#include <signal.h>
#include <sys/mman.h>

#include <atomic>
#include <thread>
#include <vector>

#include "guest.h"

namespace {

void* waits_once(void*) {
  const long failed = guest_here() != 0 || guest_wait() != 0;
  return reinterpret_cast<void*>(failed);
}

struct stack {
  void* at;
  std::size_t bytes;
};

// A stack with a page below it that nobody may touch.
stack guarded_stack(std::size_t bytes) {
  const long page = sysconf(_SC_PAGESIZE);
  auto* at = static_cast<char*>(mmap(nullptr, bytes + static_cast<std::size_t>(page),
                                     PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
  mprotect(at, static_cast<std::size_t>(page), PROT_NONE);
  return {at + page, bytes};
}

// `count` threads that wait once, sixteen at a time.
int many(int count) {
  guest_begin();
  pthread_attr_t small;
  pthread_attr_init(&small);
  pthread_attr_setstacksize(&small, 64 * 1024);
  int failed = 0;
  for (int done = 0; done < count; done += 16) {
    pthread_t threads[16];
    for (pthread_t& thread : threads)
      if (pthread_create(&thread, &small, waits_once, nullptr) != 0) return 9;
    for (pthread_t thread : threads) {
      void* result = nullptr;
      pthread_join(thread, &result);
      failed += result != nullptr;
    }
  }
  std::printf("failed %d\n", failed);
  return 0;
}

// The smallest stack that glibc gives out.
int smallest_stack() {
  guest_begin();
  // As the driver's first calls on a thread may need more, the main thread makes them.
  guest_wait();
  const stack room = guarded_stack(PTHREAD_STACK_MIN);
  pthread_attr_t attributes;
  pthread_attr_init(&attributes);
  pthread_attr_setstack(&attributes, room.at, room.bytes);
  pthread_t thread;
  if (pthread_create(&thread, &attributes, waits_once, nullptr) != 0) return 9;
  void* result = nullptr;
  pthread_join(thread, &result);
  std::printf("result %ld\n", reinterpret_cast<long>(result));
  return 0;
}

// A handler on an alternate stack of what the kernel needs and 8 KiB.
int alternate_stack() {
  guest_begin();
  const auto frame = static_cast<std::size_t>(sysconf(_SC_MINSIGSTKSZ));
  const stack room = guarded_stack((frame + 8192 + 4095) / 4096 * 4096);
  stack_t alternate{};
  alternate.ss_sp = room.at;
  alternate.ss_size = room.bytes;
  sigaltstack(&alternate, nullptr);
  struct sigaction action {};
  action.sa_flags = SA_ONSTACK;
  action.sa_handler = [](int) { guest_wait(); };
  sigaction(SIGUSR1, &action, nullptr);
  raise(SIGUSR1);
  raise(SIGUSR1);
  std::printf("handled\n");
  return 0;
}

struct waits_at_thread_end {
  ~waits_at_thread_end() { guest_wait(); }
};

// Calls from thread_local destructors and from those of pthread keys, after frames were pushed.
int destructors() {
  guest_begin();
  pthread_key_t key;
  pthread_key_create(&key, [](void*) { guest_wait(); });
  for (int i = 0; i < 3; ++i) {
    std::thread([&] {
      thread_local waits_at_thread_end first;
      asm volatile("" ::"r"(&first));
      guest_here();
      const int token = hostwait_push(HOSTWAIT_LOG, HOSTWAIT_ALL);
      guest_wait();
      hostwait_pop(token);
      pthread_setspecific(key, &key);
    }).join();
  }
  static waits_at_thread_end at_exit;
  std::atexit([] { guest_wait(); });
  return 0;
}

// A function that the driver calls on a thread of its own, and which calls the driver: refused by
// the driver itself.
int host_function() {
  guest_begin();
  static std::atomic<int> result{-1};
  CALL(cuLaunchHostFunc, int, (void*, void (*)(void*), void*))
  (
      nullptr, [](void*) { result = guest_wait(); }, nullptr);
  while (result < 0) usleep(1000);
  guest_wait();
  std::printf("inside %d\n", result.load());
  return 0;
}

// Threads that come and go while one reads sums; they never go back.
int readers(int rounds) {
  guest_begin();
  std::atomic<bool> stop{false};
  std::atomic<int> back{0};
  std::thread reader([&] {
    hostwait_stats before{};
    while (!stop) {
      hostwait_stats now{};
      now.size = sizeof now;
      if (hostwait_stats_get(&now) == 0 && now.calls < before.calls) ++back;
      before = now;
    }
  });
  std::printf("pid %d\n", getpid());
  std::fflush(stdout);
  for (int round = 0; round < rounds; ++round) {
    std::vector<std::thread> threads;
    for (int i = 0; i < 4; ++i) {
      threads.emplace_back([] {
        guest_here();
        for (int j = 0; j < 50; ++j) guest_wait();
      });
    }
    for (std::thread& thread : threads) thread.join();
  }
  stop = true;
  reader.join();
  std::printf("back %d\n", back.load());
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  const char* what = argc > 1 ? argv[1] : "";
  const int number = argc > 2 ? std::atoi(argv[2]) : 0;
  if (strcmp(what, "many") == 0) return many(number);
  if (strcmp(what, "smallest_stack") == 0) return smallest_stack();
  if (strcmp(what, "alternate_stack") == 0) return alternate_stack();
  if (strcmp(what, "destructors") == 0) return destructors();
  if (strcmp(what, "host_function") == 0) return host_function();
  if (strcmp(what, "readers") == 0) return readers(number);
  std::fprintf(stderr, "threads: no scenario %s\n", what);
  return 2;
}
