// SPDX-License-Identifier: Apache-2.0
// Copyright The hostwait authors
// HK-02, missed_detection, HAMi: https://github.com/Project-HAMi/HAMi/issues/925
// Is taking over dlsym enough when a program links the driver directly? The same call by the link
// table, by dlsym with a handle, by dlsym(RTLD_DEFAULT) and by cuGetProcAddress: four findings of
// one call each. (dlvsym: tests/routes; the driver's symbols bear no version to ask for.)
//
// expect case: {"kind": "stream_sync", "call": "cuStreamSynchronize", "calls": 1, "at": "linked"}
// expect case: {"kind": "stream_sync", "call": "cuStreamSynchronize", "calls": 1, "at": "handle"}
// expect case: {"kind": "stream_sync", "call": "cuStreamSynchronize", "calls": 1, "at":
//               "default"}
// expect case: {"kind": "stream_sync", "call": "cuStreamSynchronize", "calls": 1, "at":
//               "address"}
// expect control: nothing
#include <dlfcn.h>

#include "cases.hpp"

namespace {

using wait_function = CUresult (*)(CUstream);

wait_function as_wait(void* found) {
  cases::expect(found != nullptr, "cuStreamSynchronize is found");
  return reinterpret_cast<wait_function>(found);
}

void all_routes() {
  void* library = dlopen("libcuda.so.1", RTLD_NOW);
  const wait_function by_handle = as_wait(dlsym(library, "cuStreamSynchronize"));
  const wait_function by_default = as_wait(dlsym(RTLD_DEFAULT, "cuStreamSynchronize"));
  void* found = nullptr;
  CUdriverProcAddressQueryResult how;
  MUST(cuGetProcAddress("cuStreamSynchronize", &found, 12000, 0, &how));
  const wait_function by_address = as_wait(found);
  const CUstream s = cases::stream();
  MUST(cuStreamSynchronize(s));  // here linked
  MUST(by_handle(s));            // here handle
  MUST(by_default(s));           // here default
  MUST(by_address(s));           // here address
  dlclose(library);
}

void no_wait() {
  void* found = nullptr;
  CUdriverProcAddressQueryResult how;
  MUST(cuGetProcAddress("cuStreamGetFlags", &found, 12000, 0, &how));
  unsigned flags = 0;
  cases::busy(nullptr, 5);
  MUST(reinterpret_cast<decltype(&cuStreamGetFlags)>(found)(cases::stream(), &flags));
  MUST(cuStreamGetFlags(cases::stream(), &flags));
}

HOSTWAIT_CASE("HK-02", all_routes, no_wait);

}  // namespace
