// SPDX-License-Identifier: Apache-2.0
// Copyright The hostwait authors
// An interposer of dlsym itself, preloaded before us; it finds the next one by a versioned look-up.
#define _GNU_SOURCE
#include <dlfcn.h>

static int calls;
int front_dlsym_calls(void) {
  return calls;
}

void* dlsym(void* handle, const char* name) {
#if defined(__x86_64__)
  static const char version[] = "GLIBC_2.2.5";
#else
  static const char version[] = "GLIBC_2.17";
#endif
  void* (*next)(void*, const char*) =
      (void* (*)(void*, const char*))dlvsym(RTLD_NEXT, "dlsym", version);
  ++calls;
  return next(handle, name);
}
