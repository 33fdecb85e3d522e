// SPDX-License-Identifier: Apache-2.0
// Copyright The hostwait authors
// cuGetProcAddress in both forms, export tables (there are none), and the generic fallback.
#include "hostwait_sim.h"
#include "state.hpp"

namespace hostwait::sim {

void* look_up(const char* name, int version, bool per_thread, bool* known);
int simulated(const char* symbol);

int not_simulated(int index) {
  CUresult result = enter(static_cast<id>(index));
  return result ? result : CUDA_ERROR_NOT_SUPPORTED;
}

namespace {

CUresult get(const char* name, void** out, int version, cuuint64_t flags,
             CUdriverProcAddressQueryResult* status) {
  constexpr cuuint64_t both =
      CU_GET_PROC_ADDRESS_LEGACY_STREAM | CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM;
  if (!name || !out || version > CUDA_VERSION || flags & ~both || (flags & both) == both)
    return CUDA_ERROR_INVALID_VALUE;
  bool known;
  *out = look_up(name, version, flags & CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM, &known);
  if (status)
    *status = *out    ? CU_GET_PROC_ADDRESS_SUCCESS
              : known ? CU_GET_PROC_ADDRESS_VERSION_NOT_SUFFICIENT
                      : CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND;
  return CUDA_SUCCESS;
}

// The older form has no status: its only way to say "not found" is the result.
CUresult get_or_fail(const char* name, void** out, int version, cuuint64_t flags) {
  CUresult result = get(name, out, version, flags, nullptr);
  return !result && !*out ? CUDA_ERROR_NOT_FOUND : result;
}

CUresult export_table(const void** out) {
  if (!out) return CUDA_ERROR_INVALID_VALUE;
  *out = nullptr;
  return CUDA_ERROR_NOT_FOUND;
}

}  // namespace
}  // namespace hostwait::sim

using namespace hostwait::sim;

SIM_API(cuGetProcAddress, (const char* name, void** out, int version, cuuint64_t flags),
        get_or_fail(name, out, version, flags))
SIM_API(cuGetProcAddress_v2,
        (const char* name, void** out, int version, cuuint64_t flags,
         CUdriverProcAddressQueryResult* status),
        get(name, out, version, flags, status))
SIM_API(cuGetExportTable, (const void** out, const CUuuid*), export_table(out))

extern "C" __attribute__((visibility("default"))) int hostwait_sim_is_simulated(
    const char* symbol) {
  return symbol ? simulated(symbol) : -1;
}
