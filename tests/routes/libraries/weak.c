// SPDX-License-Identifier: Apache-2.0
// Copyright The hostwait authors
// A library with weak references to the driver.
#include <stddef.h>

__attribute__((weak)) int cuCtxSynchronize(void);

int library_sees_driver(void) {
  return cuCtxSynchronize != NULL;
}
int library_wait(void) {
  return cuCtxSynchronize();
}
