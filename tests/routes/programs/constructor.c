/* SPDX-License-Identifier: Apache-2.0
 * Copyright The hostwait authors
 * What a library did with the driver before our constructor ran counts like everything else. */
#include "../route.h"

int constructor_result(void);
int (*constructor_early(void))(void);

int main(void) {
  CHECK(constructor_result() == 0);
  CHECK(constructor_early() != NULL && constructor_early()() == 0);
  if (!route_preloaded()) return route_result();
  CHECK(wrapped("cuStreamSynchronize") == 1);
  CHECK(wrapped("cuMemFree_v2") == 1);
  CHECK(wrapped("cuCtxSynchronize") == 1);
  CHECK(route_number("routes_copies") == 1);
  // What the resolver got was given out before we were relocated: not seen, and said aloud.
  CHECK(route_number("routes_blind"));
  CHECK(strstr(route_notes(), "1 look-ups by IFUNC resolvers") != NULL);
  return route_result();
}
