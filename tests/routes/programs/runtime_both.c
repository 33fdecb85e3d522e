/* SPDX-License-Identifier: Apache-2.0
 * Copyright The hostwait authors
 * Two runtimes in one process, one linked statically and one opened: each takes its functions from
 * the one driver, and each gets our wrappers. On the simulated driver both stop at a private table.
 */
#include <cuda_runtime_api.h>

#include "../route.h"

static int handed(const char* symbol) {
  return ((int (*)(const char*))route_question("routes_handed"))(symbol);
}

int main(void) {
  CHECK(cudaDeviceSynchronize() == cudaErrorSymbolNotFound);
  const int first = route_preloaded() ? handed("cuCtxSynchronize_v2") : 0;
  void* other = dlopen(getenv("ROUTE_RUNTIME"), RTLD_NOW | RTLD_LOCAL);
  if (other == NULL) fprintf(stderr, "%s\n", dlerror());
  CHECK(other != NULL);
  if (other == NULL) return route_result();
  cudaError_t (*synchronize)(void) = (cudaError_t(*)(void))dlsym(other, "cudaDeviceSynchronize");
  CHECK(synchronize != NULL && synchronize != cudaDeviceSynchronize);
  CHECK(synchronize() == cudaErrorSymbolNotFound);
  CHECK(cudaDeviceSynchronize() == cudaErrorSymbolNotFound);
  if (!route_preloaded()) return route_result();
  CHECK(first >= 1 && handed("cuCtxSynchronize_v2") > first);
  CHECK(route_number("routes_copies") == 1);
  CHECK(!route_number("routes_blind"));
  return route_result();
}
