// SPDX-License-Identifier: Apache-2.0
// Copyright The hostwait authors
// A copy of the driver in a namespace of its own (dlmopen) is left alone, and reported.
#include <gnu/libc-version.h>

#include "../route.h"

int main(void) {
  void* driver = dlmopen(LM_ID_NEWLM, "libcuda.so.1", RTLD_NOW);
  CHECK(driver != NULL);
  if (driver == NULL) return route_result();
  int (*wait)(void*) = (int (*)(void*))dlsym(driver, "cuStreamSynchronize");
  const char* (*last)(void) = (const char* (*)(void))dlsym(driver, "standin_last");
  CHECK(wait(NULL) == 0 && strcmp(last(), "cuStreamSynchronize") == 0);
  CHECK(wrapped("cuStreamSynchronize") == 0);
  // Older glibc keeps its namespaces to itself.
  if (atoi(gnu_get_libc_version() + 2) < 35) return route_failures == 0 ? 77 : 1;
  CHECK(strstr(route_notes(), "dlmopen") != NULL && strstr(route_notes(), "libcuda.so.1") != NULL);
  CHECK(route_number("routes_blind"));
  return route_result();
}
