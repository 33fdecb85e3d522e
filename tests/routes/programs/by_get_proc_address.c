// SPDX-License-Identifier: Apache-2.0
// Copyright The hostwait authors
// cuGetProcAddress in both forms: by dlsym, and asked for by itself as the runtime does.
#include "../route.h"

typedef int (*form_1)(const char*, void**, int, uint64_t);
typedef int (*form_2)(const char*, void**, int, uint64_t, int*);
enum { per_thread = 2 };

int main(void) {
  void* driver = dlopen("libcuda.so.1", RTLD_LAZY);
  CHECK(driver != NULL);
  if (driver == NULL) return route_result();
  const char* (*last)(void) = (const char* (*)(void))dlsym(driver, "standin_last");

  // The static runtime's way: _v2 by dlsym, everything else through it.
  form_2 ask_2 = (form_2)dlsym(driver, "cuGetProcAddress_v2");
  int (*call)(void*) = NULL;
  int status = 7;
  CHECK(ask_2("cuStreamSynchronize", (void**)&call, 13000, 0, &status) == 0 && status == 0);
  CHECK(call(NULL) == 0 && strcmp(last(), "cuStreamSynchronize") == 0);
  CHECK(wrapped("cuStreamSynchronize") == 1);
  CHECK(ask_2("cuStreamSynchronize", (void**)&call, 13000, per_thread, NULL) == 0);
  CHECK(call(NULL) == 0 && strcmp(last(), "cuStreamSynchronize_ptsz") == 0);
  CHECK(wrapped("cuStreamSynchronize_ptsz") == 1);

  // The version decides the symbol, and with it the row.
  CHECK(ask_2("cuCtxSynchronize", (void**)&call, 13000, 0, NULL) == 0 && call(NULL) == 0);
  CHECK(wrapped("cuCtxSynchronize_v2") == 1 && wrapped("cuCtxSynchronize") == 0);
  CHECK(ask_2("cuCtxSynchronize", (void**)&call, 12000, 0, NULL) == 0 && call(NULL) == 0);
  CHECK(wrapped("cuCtxSynchronize") == 1);
  CHECK((void*)call == dlsym(driver, "cuCtxSynchronize"));

  // Itself, in the 11.3 and the 12.0 form: each is a wrapper of the right number of arguments.
  form_1 ask_1 = NULL;
  CHECK(ask_2("cuGetProcAddress", (void**)&ask_1, 11030, 0, NULL) == 0);
  CHECK((void*)ask_1 == dlsym(driver, "cuGetProcAddress"));
  CHECK(ask_1("cuMemcpyDtoH", (void**)&call, 11030, 0) == 0);
  CHECK(((int (*)(void*, uint64_t, size_t))(void*)call)(NULL, 0, 0) == 0);
  CHECK(wrapped("cuMemcpyDtoH_v2") == 1);
  form_2 again = NULL;
  CHECK(ask_1("cuGetProcAddress", (void**)&again, 12000, 0) == 0 && again == ask_2);
  status = 7;
  CHECK(again("cuMemcpyDtoH", (void**)&call, 12000, per_thread, &status) == 0 && status == 0);
  CHECK(((int (*)(void*, uint64_t, size_t))(void*)call)(NULL, 0, 0) == 0);
  CHECK(wrapped("cuMemcpyDtoH_v2_ptds") == 1);

  // Errors and null results are the driver's.
  call = (int (*)(void*))(void*)main;
  status = 7;
  CHECK(ask_2("cuNotThere", (void**)&call, 13000, 0, &status) == 500 && call == NULL);
  CHECK(status == 1);
  CHECK(ask_2("cuInit", (void**)&call, 13000, 0, NULL) == 0);
  CHECK((void*)call == dlsym(driver, "cuInit"));

  // A function that no row knows under a name of the catalogue: passed through, and said aloud.
  CHECK(!route_number("routes_blind"));
  for (int i = 0; i < 3; ++i)
    CHECK(ask_2("cuEventSynchronize", (void**)&call, 99000, 0, NULL) == 0);
  CHECK(call(NULL) == 0 && strcmp(last(), "newer") == 0);
  CHECK(wrapped("cuEventSynchronize") == 0);
  CHECK(route_number("routes_blind"));
  CHECK(strstr(route_notes(), "cuEventSynchronize: 3 look-ups") != NULL);
  CHECK(strstr(route_notes(), "libcuda.so.1") != NULL);
  CHECK((route_number("routes_seen") & ROUTE_GET_PROC_ADDRESS) != 0);
  return route_result();
}
