/* SPDX-License-Identifier: Apache-2.0
 * Copyright The hostwait authors
 * libhostwait_selftest.so: loaded by `hostwait doctor` alone. It stands for a library that is
 * linked with -lcuda, and for one that is opened with RTLD_DEEPBIND and looks the driver up itself.
 */
#include <dlfcn.h>
#include <stddef.h>

extern int cuCtxSynchronize(void);

__attribute__((visibility("default"))) int hostwait_selftest_linked(void* driver) {
  (void)driver;
  return cuCtxSynchronize();
}

__attribute__((visibility("default"))) int hostwait_selftest_by_dlsym(void* driver) {
  int (*function)(void);
  *(void**)(&function) = dlsym(driver, "cuCtxSynchronize");
  return function != NULL ? function() : -1;
}
