// SPDX-License-Identifier: Apache-2.0
// Copyright The hostwait authors
// The jump leaves every argument register as it was: the next dlsym, a witness preloaded behind us,
// writes down what it gets. Run with and without the preload of our library.
#include "../route.h"

#if defined(__x86_64__)
extern uint64_t witness[8] __attribute__((weak));

static void* call_with_marks(void* function, void* handle, const char* name) {
  void* result;
  register uint64_t rax asm("rax") = 0x1111;
  register uint64_t r10 asm("r10") = 0x2222;
  register uint64_t r8 asm("r8") = 0x3333;
  register uint64_t r9 asm("r9") = 0x4444;
  uint64_t rdx = 0x5555, rcx = 0x6666;
  __asm__ volatile("call *%[function]"
                   : "=a"(result), "+D"(handle), "+S"(name), "+d"(rdx), "+c"(rcx), "+r"(r8),
                     "+r"(r9), "+r"(r10)
                   : [function] "b"(function), "a"(rax)
                   : "r11", "memory", "cc");
  return result;
}

static void check_marks(void* handle, const char* name) {
  uint64_t* seen = (uint64_t*)dlsym(RTLD_DEFAULT, "witness");
  CHECK(seen != NULL);
  memset(seen, 0, 8 * sizeof *seen);
  call_with_marks((void*)dlsym, handle, name);
  CHECK(seen[0] == (uint64_t)handle && seen[1] == (uint64_t)name);
  CHECK(seen[2] == 0x5555 && seen[3] == 0x6666 && seen[4] == 0x3333 && seen[5] == 0x4444);
  CHECK(seen[6] == 0x1111 && seen[7] == 0x2222);
}

int main(void) {
  check_marks(NULL, "getpid");
  // The long way: objects may have been loaded, and a driver name that is not certain.
  dlopen(NULL, RTLD_LAZY);
  check_marks(NULL, "getpid");
  check_marks(RTLD_NEXT, "cuNotThere");
  errno = 4242;
  CHECK(dlsym(RTLD_NEXT, "getpid") != NULL && errno == 4242);
  return route_result();
}
#else
int main(void) {
  return 77;
}
#endif
