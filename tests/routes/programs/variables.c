// SPDX-License-Identifier: Apache-2.0
// Copyright The hostwait authors
// CUEW's way: a library exports *variables* named like driver functions, and fills them by dlsym.
// The program uses them, too (in a non-PIE build by a copy relocation).
#include "../route.h"

extern int (*cuCtxSynchronize)(void);
extern int (*cuInit)(unsigned);
int wrangler_load(void);
int wrangler_wait(void);
void* wrangler_address(void);

int main(void) {
  int (** volatile mine)(void) = &cuCtxSynchronize;
  CHECK((void*)mine == wrangler_address());
  CHECK(*mine == NULL && cuInit != NULL && cuInit(0) == 77);  // as initialised by the library
  // A variable is found as such, before and after the driver is there.
  CHECK(dlsym(RTLD_DEFAULT, "cuCtxSynchronize") == (void*)mine);
  CHECK(wrangler_load() == 0);
  CHECK(dlsym(RTLD_DEFAULT, "cuCtxSynchronize") == (void*)mine);
  CHECK(*mine != NULL && (*mine)() == 0);
  CHECK(wrangler_wait() == 0);
  if (route_preloaded()) {
    CHECK(wrapped("cuCtxSynchronize") == 2);
    CHECK((route_number("routes_seen") & ROUTE_LINKED) == 0);
  }
  // A library linked with the driver is opened: its references are its own scope's affair, and
  // here the variables come first in it.
  CHECK(dlopen(getenv("ROUTE_PLUGIN"), RTLD_NOW | RTLD_LOCAL) != NULL);
  CHECK(dlsym(RTLD_DEFAULT, "cuCtxSynchronize") == (void*)mine && (*mine)() == 0);
  return route_result();
}
