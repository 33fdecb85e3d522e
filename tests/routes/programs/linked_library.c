// SPDX-License-Identifier: Apache-2.0
// Copyright The hostwait authors
// A program linked with a library that is linked with -lcuda and waits in its constructor, before
// ours has run; and a plugin of the same kind opened later.
#include "../route.h"

int library_constructor_calls(void);
int library_wait(void);
void* library_pointer(void);

int main(void) {
  CHECK(library_constructor_calls() == 2);
  // One linked call, one through dlopen and dlsym.
  CHECK(wrapped("cuCtxSynchronize") == 1);
  CHECK(wrapped("cuMemcpyDtoH_v2") == 1);
  CHECK(library_wait() == 0);
  CHECK(wrapped("cuCtxSynchronize") == 2);
  CHECK(library_pointer() == dlsym(RTLD_DEFAULT, "cuCtxSynchronize"));
  CHECK((route_number("routes_seen") & ROUTE_LINKED) != 0);
  CHECK(route_number("routes_copies") == 1);

  void* plugin = dlopen(getenv("ROUTE_PLUGIN"), RTLD_NOW | RTLD_LOCAL);
  CHECK(plugin != NULL);
  if (plugin == NULL) return route_result();
  int (*wait)(void) = (int (*)(void))dlsym(plugin, "plugin_wait");
  CHECK(wait() == 0);
  CHECK(wrapped("cuStreamSynchronize") == 1);
  return route_result();
}
