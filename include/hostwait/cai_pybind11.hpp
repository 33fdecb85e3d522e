// SPDX-License-Identifier: Apache-2.0
// Copyright The hostwait authors
// cai_python.hpp for pybind11: results or py::error_already_set. Needs nothing but pybind11's core.
#pragma once

#include <pybind11/pybind11.h>
#include <hostwait/cai_python.hpp>

namespace hostwait::cai::py {

inline view view_of(pybind11::handle object, const options& chosen = options()) {
  auto result = view::from(object.ptr(), chosen);
  if (!result) throw pybind11::error_already_set();
  return std::move(*result);
}

inline use use_of(hostwait_cai_stream stream, std::span<view* const> views,
                  const options& chosen = options()) {
  auto result = use::acquire(stream, views, chosen);
  if (!result) throw pybind11::error_already_set();
  return std::move(*result);
}

inline void release_of(use& guard) {
  if (!guard.release()) throw pybind11::error_already_set();
}

inline pybind11::dict dict_of(const produced& array) {
  PyObject* dict = to_dict(array);
  if (dict == nullptr) throw pybind11::error_already_set();
  return pybind11::reinterpret_steal<pybind11::dict>(dict);
}

/* For a method `__dlpack__(self, **keywords)`. */
inline pybind11::object dlpack_of(const produced& array, pybind11::handle owner,
                                  const pybind11::kwargs& keywords) {
  const pybind11::tuple none(0);
  PyObject* capsule = to_dlpack(array, owner.ptr(), none.ptr(), keywords.ptr());
  if (capsule == nullptr) throw pybind11::error_already_set();
  return pybind11::reinterpret_steal<pybind11::object>(capsule);
}

}  // namespace hostwait::cai::py
