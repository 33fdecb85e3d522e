// SPDX-License-Identifier: Apache-2.0
// Copyright The hostwait authors
// Finds libc's dlsym for the witness when it is loaded.
#define _GNU_SOURCE
#include <dlfcn.h>

void* witness_next __attribute__((visibility("hidden")));

__attribute__((constructor)) static void find(void) {
  witness_next = dlvsym(RTLD_NEXT, "dlsym", "GLIBC_2.2.5");
}
