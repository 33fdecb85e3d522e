// SPDX-License-Identifier: Apache-2.0
// Copyright The hostwait authors
// One module over the pybind11 adapter, and the same over the nanobind adapter (-DUSE_PYBIND11).
#ifdef USE_PYBIND11
#include <hostwait/cai_pybind11.hpp>
namespace binding = pybind11;
#define ADAPTER_MODULE PYBIND11_MODULE
#else
#include <hostwait/cai_nanobind.hpp>
namespace binding = nanobind;
#define ADAPTER_MODULE NB_MODULE
#endif

namespace cai = hostwait::cai::py;

static cai::produced four_floats(uint64_t ptr) {
  static const int64_t shape[] = {4};
  cai::produced array;
  hostwait_cai_describe("<f4", ptr, 1, shape, nullptr, 0, &array.desc, nullptr);
  array.flags = HOSTWAIT_CAI_EXPORT_NONE;
  return array;
}

ADAPTER_MODULE(ADAPTER_NAME, m) {
  m.def("length", [](binding::handle object) { return cai::view_of(object).desc().shape[0]; });
  m.def("order", [](binding::handle object, uint64_t stream) {
    cai::view view = cai::view_of(object);
    cai::view* arrays[] = {&view};
    cai::use use = cai::use_of(hostwait_cai_stream_value(stream), arrays);
    cai::release_of(use);
  });
  m.def("dict", [](uint64_t ptr) { return cai::dict_of(four_floats(ptr)); });
  m.def("dlpack", [](binding::handle owner, uint64_t ptr, binding::kwargs keywords) {
    return cai::dlpack_of(four_floats(ptr), owner, keywords);
  });
}
