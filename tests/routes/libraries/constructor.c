/* SPDX-License-Identifier: Apache-2.0
 * Copyright The hostwait authors
 * A library that uses the driver in its constructor, which runs before a preloaded library's, and
 * looks a function up in an IFUNC resolver, which runs before any constructor. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stddef.h>

int cuStreamSynchronize(void*);
int cuMemFree_v2(unsigned long);

static int by_link = -1, by_look = -1;
static int (*early)(void);

static int nothing(void) {
  return 0;
}
__attribute__((used)) static int (*resolver(void))(void) {
  early = (int (*)(void))dlsym(RTLD_DEFAULT, "cuCtxSynchronize");
  return nothing;
}
static int chosen(void) __attribute__((ifunc("resolver")));

__attribute__((constructor)) static void start(void) {
  by_link = cuStreamSynchronize(NULL);
  void* driver = dlopen("libcuda.so.1", RTLD_LAZY);
  int (*call)(void) = (int (*)(void))dlsym(driver, "cuCtxSynchronize");
  by_look = call != NULL ? call() : -2;
}

int constructor_result(void) {
  return by_link | by_look | chosen() | cuMemFree_v2(0);
}
int (*constructor_early(void))(void) {
  return early;
}
