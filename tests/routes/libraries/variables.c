// SPDX-License-Identifier: Apache-2.0
// Copyright The hostwait authors
// CUEW style: variables named like driver functions.
#include <dlfcn.h>
#include <stddef.h>

static int not_loaded(unsigned flags) {
  return (void)flags, 77;
}

int (*cuCtxSynchronize)(void) = NULL;
int (*cuInit)(unsigned) = not_loaded;

int wrangler_load(void) {
  void* driver = dlopen("libcuda.so.1", RTLD_LAZY);
  if (driver == NULL) return 1;
  cuCtxSynchronize = (int (*)(void))dlsym(driver, "cuCtxSynchronize");
  cuInit = (int (*)(unsigned))dlsym(driver, "cuInit");
  return cuCtxSynchronize == NULL || cuInit == NULL;
}
int wrangler_wait(void) {
  return cuCtxSynchronize();
}
void* wrangler_address(void) {
  return &cuCtxSynchronize;
}
