// SPDX-License-Identifier: Apache-2.0
// Copyright The hostwait authors
// A library linked with -lcuda whose constructor waits, once by link and once by dlopen and dlsym.
#include <dlfcn.h>
#include <stddef.h>
#include <stdint.h>

int cuCtxSynchronize(void);

static int calls;

__attribute__((constructor)) static void at_load(void) {
  if (cuCtxSynchronize() == 0) ++calls;
  void* driver = dlopen("libcuda.so.1", RTLD_LAZY);
  if (driver == NULL) return;
  int (*copy)(void*, uint64_t, size_t) =
      (int (*)(void*, uint64_t, size_t))dlsym(driver, "cuMemcpyDtoH_v2");
  if (copy != NULL && copy(NULL, 0, 0) == 0) ++calls;
}

int library_constructor_calls(void) {
  return calls;
}
int library_wait(void) {
  return cuCtxSynchronize();
}
void* library_pointer(void) {
  return (void*)cuCtxSynchronize;
}
