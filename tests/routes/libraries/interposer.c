// SPDX-License-Identifier: Apache-2.0
// Copyright The hostwait authors
// An interposer of the common kind: it wraps a driver function and a function of nobody's, and goes
// on with RTLD_NEXT. PREFIX keeps the preloaded instances apart.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stddef.h>

#define JOIN_(a, b) a##b
#define JOIN(a, b) JOIN_(a, b)

static int waits, probes;

int JOIN(PREFIX, _waits)(void) {
  return waits;
}
int JOIN(PREFIX, _probes)(void) {
  return probes;
}

int cuCtxSynchronize(void) {
  int (*next)(void) = (int (*)(void))dlsym(RTLD_NEXT, "cuCtxSynchronize");
  ++waits;
  return next != NULL && next != cuCtxSynchronize ? next() : -1;
}

// Were RTLD_NEXT taken from another object, it would find itself and never end.
int probe(void) {
  int (*next)(void) = (int (*)(void))dlsym(RTLD_NEXT, "probe");
  if (++probes > 1) return -1000;
  return next != NULL ? 1 + next() : 1;
}
