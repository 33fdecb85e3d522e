/* SPDX-License-Identifier: Apache-2.0
 * Copyright The hostwait authors
 * Linked with a library that defines cu… functions itself: that library's are called, whatever the
 * driver does; what it passes on to the driver counts once. */
#include "../route.h"

int cuInit(unsigned flags);
int cuCtxSynchronize(void);
int stub_load(void);

int main(void) {
  int (*found)(void) = (int (*)(void))dlsym(RTLD_DEFAULT, "cuCtxSynchronize");
  int (*volatile linked)(void) = cuCtxSynchronize;
  CHECK(found == linked);
  CHECK(cuInit(2) == 42 && cuCtxSynchronize() == 41 && found() == 41);
  if (route_preloaded()) {
    CHECK(route_number("routes_copies") == 0 && route_number("routes_seen") == 0);
    CHECK(wrapped("cuCtxSynchronize") == 0);
  }
  CHECK(stub_load() == 0);
  CHECK(dlsym(RTLD_DEFAULT, "cuCtxSynchronize") == (void*)linked);
  CHECK(cuInit(2) == 42 && cuCtxSynchronize() == 0 && found() == 0);
  if (route_preloaded()) {
    CHECK(wrapped("cuCtxSynchronize") == 2);
    CHECK(route_number("routes_copies") == 1);
    CHECK(!route_number("routes_blind"));
  }
  return route_result();
}
