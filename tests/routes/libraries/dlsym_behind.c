// SPDX-License-Identifier: Apache-2.0
// Copyright The hostwait authors
// An interposer of dlsym preloaded after us: it must still be asked.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <string.h>

static int calls, driver_calls;
int behind_dlsym_calls(void) {
  return calls;
}
int behind_dlsym_driver_calls(void) {
  return driver_calls;
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
  if (strncmp(name, "cu", 2) == 0) ++driver_calls;
  return next(handle, name);
}
