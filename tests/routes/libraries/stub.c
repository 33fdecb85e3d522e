/* SPDX-License-Identifier: Apache-2.0
 * Copyright The hostwait authors
 * A library of another name that defines driver functions itself: a mock, or a stub that looks the
 * driver up at the first call. */
#include <dlfcn.h>
#include <stddef.h>

static void* driver;

int stub_load(void) {
  driver = dlopen("libcuda.so.1", RTLD_LAZY | RTLD_LOCAL);
  return driver != NULL ? 0 : 1;
}
int cuInit(unsigned flags) {
  return (int)flags + 40;
}
/* Until it is loaded the mock's answer, then the driver's. */
int cuCtxSynchronize(void) {
  if (driver == NULL) return 41;
  int (*call)(void) = (int (*)(void))dlsym(driver, "cuCtxSynchronize");
  return call();
}
