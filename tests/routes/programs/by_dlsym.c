// SPDX-License-Identifier: Apache-2.0
// Copyright The hostwait authors
// dlopen, then dlsym and dlvsym of driver functions; also run without the preload.
#include "../route.h"

int main(void) {
  const int preloaded = route_preloaded();
  void* driver = dlopen("libcuda.so.1", RTLD_LAZY | RTLD_LOCAL);
  CHECK(driver != NULL);
  if (driver == NULL) return route_result();
  const char* (*last)(void) = (const char* (*)(void))dlsym(driver, "standin_last");

  errno = 4242;
  int (*synchronize)(void) = (int (*)(void))dlsym(driver, "cuCtxSynchronize");
  CHECK(errno == 4242);
  CHECK(dlerror() == NULL);
  CHECK(synchronize != NULL && synchronize() == 0);
  CHECK(strcmp(last(), "cuCtxSynchronize") == 0);

  int (*stream)(void*) = (int (*)(void*))dlsym(driver, "cuStreamSynchronize_ptsz");
  CHECK(stream(NULL) == 0 && strcmp(last(), "cuStreamSynchronize_ptsz") == 0);

  int (*copy)(void*, uint64_t, size_t) =
      (int (*)(void*, uint64_t, size_t))dlvsym(driver, "cuMemcpyDtoH_v2", "LIBCUDA_1");
  CHECK(copy != NULL && copy(NULL, 0, 0) == 0 && strcmp(last(), "cuMemcpyDtoH_v2") == 0);
  // The stand-in has versions: a wrong one fails, with libc's own words.
  CHECK(dlvsym(driver, "cuMemcpyDtoH_v2", "LIBCUDA_9") == NULL);
  const char* words = dlerror();
  CHECK(words != NULL && strstr(words, "LIBCUDA_9") != NULL);

  // What fails without us fails with us, in the same words.
  CHECK(dlsym(driver, "cuNotThere") == NULL);
  words = dlerror();
  CHECK(words != NULL && strstr(words, "libcuda.so.1: undefined symbol: cuNotThere") != NULL);
  CHECK(dlsym(RTLD_DEFAULT, "cuCtxSynchronize") == NULL);  // opened RTLD_LOCAL
  words = dlerror();
  CHECK(words != NULL && strstr(words, "by_dlsym: undefined symbol: cuCtxSynchronize") != NULL);
  CHECK(dlsym(RTLD_NEXT, "cuCtxSynchronize") == NULL);
  words = dlerror();
  CHECK(words != NULL && strstr(words, "by_dlsym: undefined symbol: cuCtxSynchronize") != NULL);
  void* program = dlopen(NULL, RTLD_LAZY);
  CHECK(program != NULL && dlsym(program, "cuCtxSynchronize") == NULL);

  // An exact answer for names of no row, and for a row that is not armed.
  Dl_info info;
  void* count = dlsym(driver, "cuDeviceGetCount");
  CHECK(dladdr(count, &info) != 0 && strstr(info.dli_fname, "libcuda") != NULL);
  void* release = dlsym(driver, "cuMemFree_v2");
  const int unarmed = getenv("ROUTES_UNARMED") != NULL || !preloaded;
  CHECK(dladdr(release, &info) != 0 && (strstr(info.dli_fname, "libcuda") != NULL) == unarmed);
  CHECK(dlsym(driver, "cuMemFree_v2") == release);

  if (preloaded) {
    CHECK(wrapped("cuCtxSynchronize") == 1);
    CHECK(wrapped("cuStreamSynchronize_ptsz") == 1);
    CHECK(wrapped("cuMemcpyDtoH_v2") == 1);
    CHECK(route_number("routes_seen") == (ROUTE_DLSYM | ROUTE_DLVSYM));
    CHECK(route_number("routes_copies") == 1);
    CHECK(!route_number("routes_blind") && strcmp(route_notes(), "") == 0);
    const unsigned before = route_number("routes_generation");
    CHECK(dlclose(program) == 0);
    CHECK(route_number("routes_generation") > before);
  }
  CHECK(dlclose(driver) == 0);
  return route_result();
}
