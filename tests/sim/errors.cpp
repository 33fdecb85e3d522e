// SPDX-License-Identifier: Apache-2.0
// Copyright The hostwait authors
// Names and texts of all results of CUDA 13.0.
#include <iterator>

#include "state.hpp"

namespace hostwait::sim {
namespace {

struct text {
  CUresult code;
  const char* name;
};
constexpr text texts[] = {
#define HOSTWAIT_SIM_RESULT(code) {code, #code},
#include "results.def"
#undef HOSTWAIT_SIM_RESULT
};

const char* find(CUresult code) {
  for (const text& t : texts)
    if (t.code == code) return t.name;
  return nullptr;
}

// The text is the name in lower case without its prefix: out_of_memory reads "out of memory".
const char* readable(CUresult code) {
  static std::once_flag once;
  static char spelled[std::size(texts)][64];
  std::call_once(once, [] {
    for (size_t i = 0; i < std::size(texts); ++i) {
      const char* from =
          texts[i].name + (texts[i].code ? sizeof "CUDA_ERROR_" : sizeof "CUDA_") - 1;
      for (size_t n = 0; from[n] && n + 1 < sizeof spelled[i]; ++n)
        spelled[i][n] = from[n] == '_' ? ' ' : static_cast<char>(from[n] | 0x20);
    }
  });
  for (size_t i = 0; i < std::size(texts); ++i)
    if (texts[i].code == code) return spelled[i];
  return nullptr;
}

CUresult put(const char** out, const char* value) {
  if (!out) return CUDA_ERROR_INVALID_VALUE;
  *out = value;
  return value ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

}  // namespace
}  // namespace hostwait::sim

using namespace hostwait::sim;

SIM_API(cuGetErrorName, (CUresult code, const char** out), put(out, find(code)))
SIM_API(cuGetErrorString, (CUresult code, const char** out), put(out, readable(code)))
