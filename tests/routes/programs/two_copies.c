// SPDX-License-Identifier: Apache-2.0
// Copyright The hostwait authors
// Two copies of libcuda opened by path: each pointer leads to its own copy. Libraries that only
// look like the driver, by file name or by SONAME, are left alone.
#include "../route.h"

typedef int (*form_2)(const char*, void**, int, uint64_t, int*);

static void* opened(const char* variable) {
  void* handle = dlopen(getenv(variable), RTLD_LAZY | RTLD_LOCAL);
  CHECK(handle != NULL);
  if (handle == NULL) exit(1);
  return handle;
}

static unsigned calls_of(void* handle) {
  return ((unsigned (*)(void))dlsym(handle, "standin_calls"))();
}

int main(void) {
  void* copies[2] = {opened("ROUTE_COPY_A"), opened("ROUTE_COPY_B")};
  CHECK(copies[0] != copies[1]);
  int (*wait[2])(void*);
  for (int i = 0; i < 2; ++i) {
    wait[i] = (int (*)(void*))dlsym(copies[i], "cuStreamSynchronize");
    form_2 ask = (form_2)dlsym(copies[i], "cuGetProcAddress_v2");
    int (*call)(void*) = NULL;
    CHECK(ask("cuStreamSynchronize", (void**)&call, 13000, 0, NULL) == 0 && call == wait[i]);
  }
  CHECK(wait[0] != wait[1]);
  wait[0](NULL);
  wait[1](NULL);
  wait[1](NULL);
  CHECK(calls_of(copies[0]) == 1 && calls_of(copies[1]) == 2);
  CHECK(wrapped_in("cuStreamSynchronize", 0) == 1 && wrapped_in("cuStreamSynchronize", 1) == 2);
  CHECK(route_number("routes_copies") == 2);

  // A fake: the driver's file name and functions, another SONAME.
  void* named = opened("ROUTE_FILE_NAME_ONLY");
  ((int (*)(void*))dlsym(named, "cuStreamSynchronize"))(NULL);
  CHECK(calls_of(named) == 1);
  // The driver's SONAME on something that is not the driver.
  void* hollow = opened("ROUTE_SONAME_ONLY");
  CHECK(((int (*)(void))dlsym(hollow, "cuCtxSynchronize"))() == 5);
  CHECK(route_number("routes_copies") == 2);
  CHECK(wrapped_in("cuStreamSynchronize", 0) == 1 && wrapped_in("cuStreamSynchronize", 1) == 2);
  CHECK(!route_number("routes_blind"));

  // One that is closed and opened again is the same copy.
  CHECK(dlclose(copies[0]) == 0);
  copies[0] = opened("ROUTE_COPY_A");
  ((int (*)(void*))dlsym(copies[0], "cuStreamSynchronize"))(NULL);
  CHECK(calls_of(copies[0]) == 1);
  return route_result();
}
