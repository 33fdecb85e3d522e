// SPDX-License-Identifier: Apache-2.0
// Copyright The hostwait authors
// An outside extension module over the Python glue: how many dimensions an exported array has.
#define Py_LIMITED_API 0x030B0000
#include <hostwait/cai_python.hpp>

namespace {

PyObject* rank(PyObject*, PyObject* object) {
  const auto array = hostwait::cai::py::view::from(object);
  return array ? PyLong_FromUnsignedLong(array->desc().ndim) : nullptr;
}

PyMethodDef functions[] = {{"rank", rank, METH_O, nullptr}, {}};
PyModuleDef definition = {PyModuleDef_HEAD_INIT,
                          "use_cai_python",
                          nullptr,
                          -1,
                          functions,
                          nullptr,
                          nullptr,
                          nullptr,
                          nullptr};

}  // namespace

PyMODINIT_FUNC PyInit_use_cai_python() {
  return PyModule_Create(&definition);
}
