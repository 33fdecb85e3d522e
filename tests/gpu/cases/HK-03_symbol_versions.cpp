// SPDX-License-Identifier: Apache-2.0
// Copyright The hostwait authors
// HK-03, missed_detection, HAMi-core: https://github.com/Project-HAMi/HAMi-core/issues/233
// Some requested symbol versions go through unhooked. Each version of a call, plain and per-
// thread, by cuGetProcAddress: all are seen, under the name of the form that was called, and the
// report lists no pointer that it does not know.
//
// expect case: {"kind": "stream_sync", "call": "cuStreamSynchronize", "symbol":
//               "cuStreamSynchronize", "verdict": "legacy", "calls": 3, "at": "stream"}
// expect case: {"kind": "stream_sync", "call": "cuStreamSynchronize", "symbol":
//               "cuStreamSynchronize_ptsz", "verdict": "stream", "calls": 3, "at": "stream"}
// expect case: {"kind": "device_sync", "call": "cuCtxSynchronize", "symbol": "cuCtxSynchronize",
//               "verdict": "context", "calls": 1, "at": "context"}
// expect case: {"kind": "device_sync", "call": "cuCtxSynchronize", "symbol":
//               "cuCtxSynchronize_v2", "verdict": "context", "calls": 1, "at": "context_v2"}
// expect control: nothing
#include "cases.hpp"

namespace {

template <typename function>
function address(const char* name, int version, cuuint64_t flags) {
  void* found = nullptr;
  CUdriverProcAddressQueryResult how;
  MUST(cuGetProcAddress(name, &found, version, flags, &how));
  cases::expect(found != nullptr, name);
  return reinterpret_cast<function>(found);
}

void all_versions() {
  const cuuint64_t forms[] = {CU_GET_PROC_ADDRESS_LEGACY_STREAM,
                              CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM};
  for (const int version : {11000, 12000, 13000})
    for (const cuuint64_t form : forms) {
      const auto wait = address<CUresult (*)(CUstream)>("cuStreamSynchronize", version, form);
      MUST(wait(nullptr));  // here stream
    }
  CUcontext context = nullptr;
  MUST(cuCtxGetCurrent(&context));
  const auto plain = address<CUresult (*)()>("cuCtxSynchronize", 12000, forms[0]);
  const auto of_context = address<CUresult (*)(CUcontext)>("cuCtxSynchronize", 13000, forms[0]);
  MUST(plain());              // here context
  MUST(of_context(context));  // here context_v2
}

void looked_up_only() {
  for (const int version : {11000, 12000, 13000})
    address<void*>("cuStreamSynchronize", version, CU_GET_PROC_ADDRESS_LEGACY_STREAM);
  cases::busy(nullptr, 5);
}

HOSTWAIT_CASE("HK-03", all_versions, looked_up_only);

}  // namespace
