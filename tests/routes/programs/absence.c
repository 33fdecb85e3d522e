// SPDX-License-Identifier: Apache-2.0
// Copyright The hostwait authors
// Weak references and probes: without the driver they find nothing, in the program and in a
// library; with it they are seen. Built PIE and not.
#include "../route.h"

__attribute__((weak)) int cuCtxSynchronize(void);
__attribute__((weak)) int cuInit(unsigned);
int library_sees_driver(void);
int library_wait(void);

int main(void) {
  const int present = getenv("ROUTE_DRIVER") != NULL;
  int (*volatile synchronize)(void) = cuCtxSynchronize;
  int (*volatile init)(unsigned) = cuInit;
  CHECK((synchronize != NULL) == present);
  CHECK((init != NULL) == present);
  CHECK(library_sees_driver() == present);
  CHECK((dlsym(RTLD_DEFAULT, "cuCtxSynchronize") != NULL) == present);
  CHECK((dlsym(RTLD_NEXT, "cuCtxSynchronize") != NULL) == present);
  CHECK((dlsym(dlopen(NULL, RTLD_LAZY), "cuCtxSynchronize") != NULL) == present);
  if (present) {
    CHECK(synchronize() == 0);
    CHECK(wrapped("cuCtxSynchronize") == 1);
    CHECK(library_wait() == 0);
    CHECK(wrapped("cuCtxSynchronize") == 2);
  } else if (route_preloaded()) {
    CHECK(route_number("routes_copies") == 0 && route_number("routes_seen") == 0);
  }
  return route_result();
}
