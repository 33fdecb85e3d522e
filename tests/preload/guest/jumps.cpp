// SPDX-License-Identifier: Apache-2.0
// Copyright The hostwait authors
// Ways to leave a driver call other than returning, on the stand-in of driver.c: jumps SCENARIO.
#include <hostwait/hostwait.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <sys/mman.h>
#include <ucontext.h>

#include <atomic>
#include <cerrno>
#include <stdexcept>

#include "guest.h"

namespace {

void set_hook(int (*hook)()) {
  CALL(guest_driver_hook, void, (int (*)()))(hook);
}

// A call from `depth` frames down, each of which takes 1 KiB.
__attribute__((noinline)) int deep(int depth) {
  char room[1024];
  asm volatile("" ::"r"(room) : "memory");
  const int result = depth == 0 ? guest_wait() : deep(depth - 1);
  asm volatile("" ::"r"(room) : "memory");  // the frame is needed until here
  return result;
}

jmp_buf back;

int jumps_out() {
  longjmp(back, 1);
}

// Out of a call by longjmp, then calls from above, from the same place and from below it: each of
// them counts, none is taken for a call within the one that was left.
int by_longjmp() {
  guest_begin();
  for (int depth : {0, 3, 40}) {
    set_hook(jumps_out);
    if (setjmp(back) == 0) deep(3);
    set_hook(nullptr);
    for (int i = 0; i < 5; ++i) deep(depth);
  }
  std::printf("jumped\n");
  return 0;
}

int throws_out() {
  throw std::runtime_error("through the driver");
}

int by_exception() {
  guest_begin();
  for (int depth : {0, 3, 40}) {
    set_hook(throws_out);
    try {
      deep(3);
      return 9;
    } catch (const std::runtime_error& error) {
      std::printf("%s\n", error.what());
    }
    set_hook(nullptr);
    for (int i = 0; i < 5; ++i) deep(depth);
  }
  return 0;
}

std::atomic<bool> inside{false};

int sleeps_for_ever() {
  inside = true;
  for (;;) pause();
}

// Cancelled in the middle of a call; clean-up handlers run, which call again.
int by_cancel() {
  guest_begin();
  for (int kind : {PTHREAD_CANCEL_DEFERRED, PTHREAD_CANCEL_ASYNCHRONOUS}) {
    inside = false;
    set_hook(sleeps_for_ever);
    pthread_t thread;
    pthread_create(
        &thread, nullptr,
        [](void* type) -> void* {
          int before;
          pthread_setcanceltype(*static_cast<int*>(type), &before);
          pthread_cleanup_push(
              [](void*) {
                set_hook(nullptr);
                deep(0);
                deep(40);
              },
              nullptr);
          deep(3);
          pthread_cleanup_pop(0);
          return nullptr;
        },
        &kind);
    while (!inside) usleep(1000);
    pthread_cancel(thread);
    void* result = nullptr;
    pthread_join(thread, &result);
    std::printf("cancelled %d\n", result == PTHREAD_CANCELED);
  }
  guest_wait();
  return 0;
}

int raises() {
  raise(SIGUSR1);
  return 0;
}

int handler_result = -1, handler_errno = 0;

// A handler that interrupts a call and makes one: within the other, it is made and not counted.
int by_handler() {
  guest_begin();
  struct sigaction action {};
  action.sa_handler = [](int) {
    errno = 4711;
    handler_result = CALL(cuStreamSynchronize, int, (void*))(nullptr);
    handler_errno = errno;
  };
  sigaction(SIGUSR1, &action, nullptr);
  set_hook(raises);
  guest_wait();
  set_hook(nullptr);
  CALL(cuStreamSynchronize, int, (void*))(nullptr);
  std::printf("handler %d %d\n", handler_result, handler_errno);
  return 0;
}

ucontext_t main_context, fibers[2];
int turns = 0;

int yields() {
  if (turns++ == 0) swapcontext(&fibers[0], &fibers[1]);
  return 0;
}

void first_fiber() {
  const int token = hostwait_push(HOSTWAIT_LOG, HOSTWAIT_SYNC);
  guest_wait();  // the other fiber runs in the middle of it
  hostwait_pop(token);
  deep(3);
  swapcontext(&fibers[0], &main_context);
}

void second_fiber() {
  guest_wait();
  CALL(cuStreamSynchronize, int, (void*))(nullptr);
  swapcontext(&fibers[1], &fibers[0]);
}

// Two fibers on mapped stacks; the second one lies just below the first, runs while the first is in
// a call, and makes calls of its own.
int by_fibers() {
  guest_begin();
  constexpr std::size_t bytes = 64 * 1024;
  auto* stacks = static_cast<char*>(
      mmap(nullptr, 2 * bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
  for (int i = 0; i < 2; ++i) {
    getcontext(&fibers[i]);
    fibers[i].uc_stack.ss_sp = stacks + (i == 0 ? bytes : 0);
    fibers[i].uc_stack.ss_size = bytes;
    fibers[i].uc_link = &main_context;
  }
  makecontext(&fibers[0], first_fiber, 0);
  makecontext(&fibers[1], second_fiber, 0);
  set_hook(yields);
  swapcontext(&main_context, &fibers[0]);
  set_hook(nullptr);
  guest_wait();
  std::printf("fibers done\n");
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  const char* what = argc > 1 ? argv[1] : "";
  if (strcmp(what, "longjmp") == 0) return by_longjmp();
  if (strcmp(what, "exception") == 0) return by_exception();
  if (strcmp(what, "cancel") == 0) return by_cancel();
  if (strcmp(what, "handler") == 0) return by_handler();
  if (strcmp(what, "fibers") == 0) return by_fibers();
  std::fprintf(stderr, "jumps: no scenario %s\n", what);
  return 2;
}
