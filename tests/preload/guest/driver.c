/* SPDX-License-Identifier: Apache-2.0
 * Copyright The hostwait authors
 * A stand-in for libcuda whose waits run a function of the test: there a program can be cancelled,
 * jump away, throw or switch stacks, in the middle of a driver call. A test double. */
#include <stddef.h>

static int (*hook)(void);

void guest_driver_hook(int (*function)(void)) {
  hook = function;
}
int cuInit(unsigned flags) {
  (void)flags;
  return 0;
}
int cuDriverGetVersion(int* version) {
  *version = 13000;
  return 0;
}
int cuDevicePrimaryCtxRetain(void** context, int device) {
  (void)device;
  *context = NULL;
  return 0;
}
int cuCtxSetCurrent(void* context) {
  (void)context;
  return 0;
}
int cuCtxSynchronize(void) {
  return hook != NULL ? hook() : 0;
}
int cuStreamSynchronize(void* stream) {
  (void)stream;
  return 0;
}
