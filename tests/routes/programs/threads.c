// SPDX-License-Identifier: Apache-2.0
// Copyright The hostwait authors
// Threads that meet the driver at the same moment, while others open and close libraries.
#include <pthread.h>

#include "../route.h"

enum { threads = 8, rounds = 200 };
static pthread_barrier_t barrier;
static void* driver;

static void* work(void* opaque) {
  const long number = (long)opaque;
  pthread_barrier_wait(&barrier);
  for (int i = 0; i < rounds; ++i) {
    int (*wait)(void) = (int (*)(void))dlsym(driver, "cuCtxSynchronize");
    if (wait == NULL || wait() != 0) __atomic_fetch_add(&route_failures, 1, __ATOMIC_RELAXED);
    if (number % 2 == 0) {
      void* plugin = dlopen(getenv("ROUTE_PLUGIN"), RTLD_NOW | RTLD_LOCAL);
      int (*plugin_wait)(void) = (int (*)(void))dlsym(plugin, "plugin_wait");
      if (plugin_wait() != 0) __atomic_fetch_add(&route_failures, 1, __ATOMIC_RELAXED);
      dlclose(plugin);
    }
  }
  return NULL;
}

int main(void) {
  driver = dlopen("libcuda.so.1", RTLD_LAZY);
  CHECK(driver != NULL);
  pthread_barrier_init(&barrier, NULL, threads);
  pthread_t ids[threads];
  for (long i = 0; i < threads; ++i) pthread_create(&ids[i], NULL, work, (void*)i);
  for (int i = 0; i < threads; ++i) pthread_join(ids[i], NULL);
  CHECK(wrapped("cuCtxSynchronize") == threads * rounds);
  CHECK(wrapped("cuStreamSynchronize") > 0);
  CHECK(route_number("routes_copies") == 1);
  return route_result();
}
