// SPDX-License-Identifier: Apache-2.0
// Copyright The hostwait authors
// A library opened with RTLD_DEEPBIND asks libc's own dlsym, unless the flag is removed.
#include "../route.h"

int main(void) {
  const int keep = getenv("ROUTES_KEEP_DEEPBIND") != NULL;
  void* seeker = dlopen(getenv("ROUTE_SEEKER"), RTLD_NOW | RTLD_DEEPBIND);
  CHECK(seeker != NULL);
  if (seeker == NULL) return route_result();
  int (*wait)(void) = (int (*)(void))dlsym(seeker, "seeker_wait");
  CHECK(wait() == 0);
  if (!route_preloaded()) return route_result();
  CHECK(wrapped("cuCtxSynchronize") == (keep ? 0 : 1));
  CHECK(strstr(route_notes(), keep ? "RTLD_DEEPBIND kept" : "RTLD_DEEPBIND removed") != NULL);
  CHECK(strstr(route_notes(), "seeker") != NULL);
  CHECK((route_number("routes_blind") != 0) == keep);
  return route_result();
}
