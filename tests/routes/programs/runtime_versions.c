// SPDX-License-Identifier: Apache-2.0
// Copyright The hostwait authors
// The runtimes of CUDA 11.8, 12 and 13 in turn in one process, on the simulated driver: each stops
// at a private table of the driver, but until then it has looked everything up, and must have been
// given our wrappers. Arguments: the three libraries.
#include <dlfcn.h>
#include <stdio.h>
#include <unistd.h>

#include "../route.h"

static int handed(const char* symbol) {
  return ((int (*)(const char*))route_question("routes_handed"))(symbol);
}

static const char* const symbols[] = {
    "cuStreamSynchronize",  "cuEventSynchronize", "cuMemcpyDtoH_v2", "cuMemcpyDtoHAsync_v2",
    "cuMemcpyHtoDAsync_v2", "cuMemFree_v2",       "cuMemFreeHost",   "cuStreamSynchronize_ptsz"};
enum { count = sizeof symbols / sizeof *symbols };

int main(int argc, char** argv) {
  for (int i = 1; i < argc; ++i) {
    if (access(argv[i], R_OK) != 0) {
      printf("skipped: %s is not there; scripts/test.sh fetches it\n", argv[i]);
      return 77;
    }
  }
  CHECK(argc == 4);
  for (int i = 1; i < argc; ++i) {
    int before[count];
    for (int k = 0; k < count; ++k) before[k] = handed(symbols[k]);
    void* runtime = dlopen(argv[i], RTLD_NOW | RTLD_LOCAL);
    CHECK(runtime != NULL);
    if (runtime == NULL) break;
    int version = 0;
    ((int (*)(int*))dlsym(runtime, "cudaRuntimeGetVersion"))(&version);
    const int result = ((int (*)(void*))dlsym(runtime, "cudaStreamSynchronize"))(NULL);
    printf("%s: runtime %d, cudaStreamSynchronize %d\n", argv[i], version, result);
    CHECK(result != 0);
    for (int k = 0; k < count; ++k) {
      if (handed(symbols[k]) == before[k])
        fprintf(stderr, "%s was not handed to %s\n", symbols[k], argv[i]);
      CHECK(handed(symbols[k]) > before[k]);
    }
  }
  CHECK(route_number("routes_copies") == 1);
  CHECK(!route_number("routes_blind"));
  return route_result();
}
