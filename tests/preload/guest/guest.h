/* SPDX-License-Identifier: Apache-2.0
 * Copyright The hostwait authors
 * What the guest programs share: driver functions as an unmodified program finds them, and a first
 * context. A program prints the same with and without hostwait; the tests compare. */
#ifndef GUEST_H
#define GUEST_H

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static inline void* guest_look(const char* symbol) {
  void* driver = dlopen("libcuda.so.1", RTLD_NOW);
  void* found = driver != NULL ? dlsym(driver, symbol) : NULL;
  if (found == NULL) {
    fprintf(stderr, "guest: no %s\n", symbol);
    _exit(120);
  }
  return found;
}

/* A function of the driver under exactly this name: CALL(cuInit, int, (unsigned))(0). */
#define CALL(symbol, result, arguments) ((result(*) arguments)guest_look(#symbol))

static void* guest_context;

/* On a further thread. */
static inline int guest_here(void) {
  return CALL(cuCtxSetCurrent, int, (void*))(guest_context);
}

static inline void guest_begin(void) {
  if (CALL(cuInit, int, (unsigned))(0) != 0 ||
      CALL(cuDevicePrimaryCtxRetain, int, (void**, int))(&guest_context, 0) != 0 ||
      guest_here() != 0) {
    fprintf(stderr, "guest: the driver does not start\n");
    _exit(121);
  }
}

/* The call that the tests count. In a forked child the driver answers with an error. */
static inline int guest_wait(void) {
  return CALL(cuCtxSynchronize, int, (void))();
}

#endif
