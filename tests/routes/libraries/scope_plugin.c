// SPDX-License-Identifier: Apache-2.0
// Copyright The hostwait authors
// A plugin linked with the driver that also asks for a function by RTLD_DEFAULT or RTLD_NEXT.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stddef.h>

int cuStreamSynchronize(void*);

int plugin_wait(void) {
  return cuStreamSynchronize(NULL);
}

void* plugin_looks_up(int next) {
  void* volatile found = dlsym(next ? RTLD_NEXT : RTLD_DEFAULT, "cuCtxSynchronize");
  return found;
}
