// SPDX-License-Identifier: Apache-2.0
// Copyright The hostwait authors
// A linked program under two interposers that go on with RTLD_NEXT, one preloaded before us and one
// after. Built at -O0, at -O2 and under ASan; also run without our library.
#include "../route.h"

int cuCtxSynchronize(void);
int probe(void);
const char* standin_last(void);
unsigned standin_calls(void);

static int count(const char* name) {
  int (*ask)(void) = (int (*)(void))dlsym(RTLD_DEFAULT, name);
  return ask != NULL ? ask() : -1;
}

int main(void) {
  CHECK(cuCtxSynchronize() == 0);
  CHECK(strcmp(standin_last(), "cuCtxSynchronize") == 0 && standin_calls() == 1);
  CHECK(count("front_waits") == 1 && count("behind_waits") == 1);
  CHECK(probe() == 102);
  CHECK(count("front_probes") == 1 && count("behind_probes") == 1);
  // The program asks for the next ones itself: the front interposer's.
  CHECK(((int (*)(void))dlsym(RTLD_NEXT, "cuCtxSynchronize"))() == 0);
  CHECK(count("front_waits") == 2 && count("behind_waits") == 2);
  CHECK(((int (*)(void))dlsym(RTLD_DEFAULT, "cuCtxSynchronize"))() == 0);
  CHECK(count("front_waits") == 3 && standin_calls() == 3);
  if (route_preloaded()) CHECK(wrapped("cuCtxSynchronize") == 3);
  return route_result();
}
