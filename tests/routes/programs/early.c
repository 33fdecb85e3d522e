// SPDX-License-Identifier: Apache-2.0
// Copyright The hostwait authors
// dlsym called from an IFUNC resolver, while objects are still being relocated; also run without
// the preload.
#include "../route.h"

int chosen(void);

int main(void) {
  CHECK(chosen() == 7);
  return route_result();
}
