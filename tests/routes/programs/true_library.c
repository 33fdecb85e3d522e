// SPDX-License-Identifier: Apache-2.0
// Copyright The hostwait authors
// The true library instead of the double, on a linked program that also looks up: its wrappers are
// reached by each route, and routes=nolink leaves the links alone.
#include <hostwait/hostwait.h>

#include "../route.h"

int cuStreamSynchronize(void*);
const char* standin_last(void);
unsigned standin_calls(void);

static uint64_t calls(void) {
  hostwait_stats stats;
  memset(&stats, 0, sizeof stats);
  stats.size = sizeof stats;
  CHECK(hostwait_stats_get(&stats) == 0);
  return stats.calls;
}

static int ours(void* function) {
  Dl_info info;
  return dladdr(function, &info) != 0 && strstr(info.dli_fname, "libhostwait.so") != NULL;
}

int main(void) {
  const int linked = getenv("ROUTE_SEEN") != NULL && atoi(getenv("ROUTE_SEEN"));
  CHECK(hostwait_present());
  CHECK(cuStreamSynchronize(NULL) == 0 && strcmp(standin_last(), "cuStreamSynchronize") == 0);
  CHECK(calls() == (linked ? 1u : 0u));
  void* driver = dlopen("libcuda.so.1", RTLD_LAZY);
  int (*synchronize)(void*) = (int (*)(void*))dlsym(driver, "cuStreamSynchronize");
  CHECK(ours((void*)synchronize) && synchronize(NULL) == 0);
  CHECK(calls() == (linked ? 2u : 1u));
  int (*ask)(const char*, void**, int, uint64_t, int*) =
      (int (*)(const char*, void**, int, uint64_t, int*))dlsym(driver, "cuGetProcAddress_v2");
  void* function = NULL;
  CHECK(ours((void*)ask) && ask("cuStreamSynchronize", &function, 13000, 0, NULL) == 0);
  CHECK(function == (void*)synchronize);
  CHECK(standin_calls() == 2);
  // What is no row stays the driver's own.
  CHECK(ask("cuInit", &function, 13000, 0, NULL) == 0 && !ours(function));

  // A refused call does not reach the driver, by any route.
  const int token = hostwait_push(HOSTWAIT_ERROR, HOSTWAIT_SYNC);
  CHECK(token > 0);
  CHECK(synchronize(NULL) == 800 && standin_calls() == 2);
  CHECK(cuStreamSynchronize(NULL) == (linked ? 800 : 0));
  CHECK(hostwait_pop(token) == 0);
  CHECK(synchronize(NULL) == 0);
  return route_result();
}
