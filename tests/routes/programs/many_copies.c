// SPDX-License-Identifier: Apache-2.0
// Copyright The hostwait authors
// Four copies of libcuda can be told apart; the fifth passes through and is reported.
#include "../route.h"

int main(int argc, char** argv) {
  CHECK(argc == 6);
  int (*wait[5])(void*);
  void* copies[5];
  for (int i = 0; i < 5 && i + 1 < argc; ++i) {
    CHECK(!route_number("routes_blind"));
    copies[i] = dlopen(argv[i + 1], RTLD_NOW | RTLD_LOCAL);
    CHECK(copies[i] != NULL);
    if (copies[i] == NULL) return route_result();
    wait[i] = (int (*)(void*))dlsym(copies[i], "cuStreamSynchronize");
    for (int n = 0; n <= i; ++n) CHECK(wait[i](NULL) == 0);
  }
  for (int i = 0; i < 5; ++i) {
    unsigned (*calls)(void) = (unsigned (*)(void))dlsym(copies[i], "standin_calls");
    CHECK(calls() == (unsigned)i + 1);
    if (i < 4) CHECK(wrapped_in("cuStreamSynchronize", i) == i + 1);
  }
  CHECK(route_number("routes_copies") == 4);
  CHECK(route_number("routes_blind"));
  CHECK(strstr(route_notes(), "one libcuda too many") != NULL && strstr(route_notes(), argv[5]));
  return route_result();
}
