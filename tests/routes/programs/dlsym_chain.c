// SPDX-License-Identifier: Apache-2.0
// Copyright The hostwait authors
// Other interposers of dlsym before and after us: all are asked, and the wrapper is handed out.
#include "../route.h"

static int count(const char* name) {
  int (*ask)(void) = (int (*)(void))dlsym(RTLD_DEFAULT, name);
  return ask != NULL ? ask() : -1;
}

int main(void) {
  void* driver = dlopen("libcuda.so.1", RTLD_LAZY);
  CHECK(driver != NULL);
  if (driver == NULL) return route_result();
  int (*wait)(void) = (int (*)(void))dlsym(driver, "cuCtxSynchronize");
  CHECK(wait() == 0);
  const int front = count("front_dlsym_calls"), behind = count("behind_dlsym_calls");
  CHECK(front > 1 && behind > 1);
  CHECK(count("behind_dlsym_driver_calls") == 1);
  CHECK(dlsym(driver, "cuNotThere") == NULL);
  CHECK(count("behind_dlsym_driver_calls") == 2);
  if (route_preloaded()) CHECK(wrapped("cuCtxSynchronize") == 1);
  return route_result();
}
