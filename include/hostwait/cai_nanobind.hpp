// SPDX-License-Identifier: Apache-2.0
// Copyright The hostwait authors
// cai_python.hpp for nanobind: results or nanobind::python_error.
#pragma once

#include <nanobind/nanobind.h>
#include <hostwait/cai_python.hpp>

namespace hostwait::cai::py {

inline view view_of(nanobind::handle object, const options& chosen = options()) {
  auto result = view::from(object.ptr(), chosen);
  if (!result) nanobind::raise_python_error();
  return std::move(*result);
}

inline use use_of(hostwait_cai_stream stream, std::span<view* const> views,
                  const options& chosen = options()) {
  auto result = use::acquire(stream, views, chosen);
  if (!result) nanobind::raise_python_error();
  return std::move(*result);
}

inline void release_of(use& guard) {
  if (!guard.release()) nanobind::raise_python_error();
}

inline nanobind::dict dict_of(const produced& array) {
  PyObject* dict = to_dict(array);
  if (dict == nullptr) nanobind::raise_python_error();
  return nanobind::steal<nanobind::dict>(dict);
}

/* For a method `__dlpack__(self, **keywords)`. */
inline nanobind::object dlpack_of(const produced& array, nanobind::handle owner,
                                  const nanobind::kwargs& keywords) {
  const nanobind::tuple none = nanobind::make_tuple();
  PyObject* capsule = to_dlpack(array, owner.ptr(), none.ptr(), keywords.ptr());
  if (capsule == nullptr) nanobind::raise_python_error();
  return nanobind::steal<nanobind::object>(capsule);
}

}  // namespace hostwait::cai::py
