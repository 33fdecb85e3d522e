// SPDX-License-Identifier: Apache-2.0
// Copyright The hostwait authors
// NVIDIA's runtime, shared and static, on the simulated driver: it looks its functions up and stops
// at a private table of the driver, in the same way with and without us. Up to there it must have
// been given our wrappers, each form for what it is.
#include <cuda_runtime_api.h>

#include "../route.h"

static int handed(const char* symbol) {
  return ((int (*)(const char*))route_question("routes_handed"))(symbol);
}

int main(void) {
  int version = 0;
  CHECK(cudaDriverGetVersion(&version) == cudaSuccess && version == 13000);
  CHECK(cudaStreamSynchronize(0) == cudaErrorSymbolNotFound);
  CHECK(cudaDeviceSynchronize() == cudaErrorSymbolNotFound);
  void* function = NULL;
  enum cudaDriverEntryPointQueryResult status;
  CHECK(cudaGetDriverEntryPointByVersion("cuStreamSynchronize", &function, 12000, cudaEnableDefault,
                                         &status) == cudaErrorSymbolNotFound);
  CHECK(function == NULL);
  if (!route_preloaded()) return route_result();

  CHECK(route_number("routes_seen") == (ROUTE_DLSYM | ROUTE_GET_PROC_ADDRESS));
  CHECK(route_number("routes_copies") == 1);
  CHECK(!route_number("routes_blind"));
  static const char* const symbols[] = {"cuStreamSynchronize",
                                        "cuStreamSynchronize_ptsz",
                                        "cuEventSynchronize",
                                        "cuCtxSynchronize_v2",
                                        "cuMemcpyHtoD_v2",
                                        "cuMemcpyDtoH_v2",
                                        "cuMemcpyDtoH_v2_ptds",
                                        "cuMemcpyDtoHAsync_v2",
                                        "cuMemcpyHtoDAsync_v2_ptsz",
                                        "cuMemFree_v2",
                                        "cuMemFreeHost",
                                        "cuStreamQuery",
                                        "cuModuleUnload",
                                        "cuMemHostUnregister"};
  for (size_t i = 0; i < sizeof symbols / sizeof *symbols; ++i) {
    if (handed(symbols[i]) < 1) fprintf(stderr, "%s was not handed out\n", symbols[i]);
    CHECK(handed(symbols[i]) >= 1);
  }
  return route_result();
}
