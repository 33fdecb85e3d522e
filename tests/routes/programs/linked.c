// SPDX-License-Identifier: Apache-2.0
// Copyright The hostwait authors
// A program linked with -lcuda; built PIE and not, bound lazily and at once. Run with the link
// object, without it, and with routes=nolink; ROUTE_SEEN tells whether calls should be seen.
#include "../route.h"

int cuCtxSynchronize(void);
int cuStreamSynchronize(void*);
int cuMemFree_v2(uint64_t);
int cuGetProcAddress_v2(const char*, void**, int, uint64_t, int*);
int cuInit(unsigned);
const char* standin_last(void);

// Data relocations: in .data, and in .data.rel.ro.
int (*table[])(void) = {cuCtxSynchronize, cuCtxSynchronize};
int (*const constant_table[])(void) = {cuCtxSynchronize};

int main(void) {
  const int seen = getenv("ROUTE_SEEN") != NULL && atoi(getenv("ROUTE_SEEN"));
  CHECK(cuInit(0) == 0 && strcmp(standin_last(), "cuInit") == 0);
  CHECK(cuCtxSynchronize() == 0 && strcmp(standin_last(), "cuCtxSynchronize") == 0);
  CHECK(wrapped("cuCtxSynchronize") == 1 * seen);
  int (*volatile * pointers)(void) = table;
  CHECK(pointers[1]() == 0);
  CHECK(wrapped("cuCtxSynchronize") == 2 * seen);
  int (*const volatile* constants)(void) = constant_table;
  CHECK(constants[0]() == 0);
  CHECK(wrapped("cuCtxSynchronize") == 3 * seen);
  for (int i = 0; i < 3; ++i) CHECK(cuStreamSynchronize(NULL) == 0);
  CHECK(wrapped("cuStreamSynchronize") == 3 * seen);
  CHECK(cuMemFree_v2(0) == 0);
  CHECK(wrapped("cuMemFree_v2") == (getenv("ROUTES_UNARMED") != NULL ? 0 : 1 * seen));

  // One address for everybody.
  int (*volatile here)(void) = cuCtxSynchronize;
  CHECK(here == pointers[0] && here == constants[0]);
  if (seen) CHECK((void*)here == dlsym(RTLD_DEFAULT, "cuCtxSynchronize"));
  // (In a non-PIE program that is its own PLT entry, which RTLD_NEXT passes over.)
  int (*next)(void) = (int (*)(void))dlsym(RTLD_NEXT, "cuCtxSynchronize");
  CHECK(next != NULL && next() == 0 && strcmp(standin_last(), "cuCtxSynchronize") == 0);
  CHECK(wrapped("cuCtxSynchronize") == 3 * seen + 1);

  int (*call)(void*) = NULL;
  CHECK(cuGetProcAddress_v2("cuEventSynchronize", (void**)&call, 13000, 0, NULL) == 0);
  CHECK(call(NULL) == 0);
  CHECK(wrapped("cuEventSynchronize") == 1 * seen);
  CHECK(((route_number("routes_seen") & ROUTE_LINKED) != 0) == seen);
  return route_result();
}
