/* SPDX-License-Identifier: Apache-2.0
 * Copyright The hostwait authors
 * No driver on the machine: the same answers and the same words as without the preload. */
#include "../route.h"

int main(void) {
  void* handle = dlopen("libcuda.so.1", RTLD_NOW);
  if (handle != NULL) {
    puts("skipped: this machine has a driver on the default path");
    return 77;
  }
  const char* words = dlerror();
  CHECK(words != NULL && strcmp(words,
                                "libcuda.so.1: cannot open shared object file: "
                                "No such file or directory") == 0);
  CHECK(dlerror() == NULL);
  CHECK(dlsym(RTLD_DEFAULT, "cuInit") == NULL);
  words = dlerror();
  CHECK(words != NULL && strstr(words, "undefined symbol: cuInit") != NULL);
  CHECK(dlerror() == NULL);
  CHECK(dlopen("libcuda.so", RTLD_NOW | RTLD_NOLOAD) == NULL);
  if (route_preloaded()) {
    CHECK(route_number("routes_copies") == 0 && route_number("routes_seen") == 0);
    CHECK(!route_number("routes_blind"));
  }
  return route_result();
}
