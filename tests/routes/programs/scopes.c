// SPDX-License-Identifier: Apache-2.0
// Copyright The hostwait authors
// RTLD_DEFAULT and RTLD_NEXT where the driver came with a dlopen: in the global scope, and in the
// scope of a plugin that is linked with it.
#include "../route.h"

int main(void) {
  void* plugin = dlopen(getenv("ROUTE_SCOPE_PLUGIN"), RTLD_NOW | RTLD_LOCAL);
  CHECK(plugin != NULL);
  if (plugin == NULL) return route_result();
  // The driver came with the plugin: its own references are seen from the next dlsym on.
  int (*plugin_wait)(void) = (int (*)(void))dlsym(plugin, "plugin_wait");
  CHECK(plugin_wait() == 0);
  if (route_preloaded()) CHECK(wrapped("cuStreamSynchronize") == 1);
  // The program does not see it, the plugin does.
  CHECK(dlsym(RTLD_DEFAULT, "cuCtxSynchronize") == NULL);
  CHECK(dlerror() != NULL);
  void* (*found)(int) = (void* (*)(int))dlsym(plugin, "plugin_looks_up");
  void *by_default = found(0), *by_next = found(1);
  CHECK(by_default != NULL && by_next == by_default);
  CHECK(dlerror() == NULL);
  CHECK(((int (*)(void))by_default)() == 0);
  if (route_preloaded()) CHECK(wrapped("cuCtxSynchronize") == 1);

  CHECK(dlopen("libcuda.so.1", RTLD_LAZY | RTLD_GLOBAL) != NULL);
  void* global = dlsym(RTLD_DEFAULT, "cuCtxSynchronize");
  CHECK(global == by_default);
  CHECK(dlsym(RTLD_NEXT, "cuCtxSynchronize") == global);
  CHECK(found(0) == global);
  return route_result();
}
