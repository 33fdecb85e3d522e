// SPDX-License-Identifier: Apache-2.0
// Copyright The hostwait authors
// From a Python descriptor to hostwait_cai_raw: says how each value was spelled and judges nothing.
// Part of cai_python.hpp.
//
// Reading runs foreign code (__index__, mappings, masks), which may change the descriptor
// meanwhile. So every value is taken with a reference first, lists are copied to tuples, and
// nothing is read twice.
#pragma once

#include <hostwait/cai_python/reference.hpp>

#include <memory>
#include <vector>

namespace hostwait::cai::py::detail {

/* The raw form and what keeps its memory alive. */
struct parsed {
  hostwait_cai_raw raw;
  ref typestr, shape, strides, data, version, stream, descr, mask_object;
  hostwait_cai_int shape_items[HOSTWAIT_CAI_MAX_NDIM + 1];
  hostwait_cai_int stride_items[HOSTWAIT_CAI_MAX_NDIM + 1];
  hostwait_cai_field only_field;  // descr with a single one, without a sub-shape
  ref only_owner;
  std::vector<hostwait_cai_field> fields;
  std::vector<ref> field_owners;
  std::unique_ptr<parsed> mask;
};

inline uint8_t type_of(PyObject* value) noexcept {
  if (value == nullptr) return HOSTWAIT_CAI_T_ABSENT;
  if (value == Py_None) return HOSTWAIT_CAI_T_NONE;
  const unsigned long flags = PyType_GetFlags(Py_TYPE(value));
  if (flags & Py_TPFLAGS_LONG_SUBCLASS)
    return PyBool_Check(value) ? HOSTWAIT_CAI_T_BOOL : HOSTWAIT_CAI_T_INT;
  if (flags & Py_TPFLAGS_TUPLE_SUBCLASS) return HOSTWAIT_CAI_T_TUPLE;
  if (flags & Py_TPFLAGS_UNICODE_SUBCLASS) return HOSTWAIT_CAI_T_STR;
  if (flags & Py_TPFLAGS_LIST_SUBCLASS) return HOSTWAIT_CAI_T_LIST;
  if (flags & Py_TPFLAGS_DICT_SUBCLASS) return HOSTWAIT_CAI_T_DICT;
  if (flags & Py_TPFLAGS_BYTES_SUBCLASS) return HOSTWAIT_CAI_T_BYTES;
  if (PyFloat_Check(value)) return HOSTWAIT_CAI_T_FLOAT;
  if (PyIndex_Check(value)) return HOSTWAIT_CAI_T_INDEX;
  return HOSTWAIT_CAI_T_OTHER;
}

inline bool read_long(PyObject* number, hostwait_cai_int* out) noexcept {
  int overflow = 0;
  const long long value = PyLong_AsLongLongAndOverflow(number, &overflow);
  if (overflow == 0) {
    if (value == -1 && PyErr_Occurred()) return false;
    const uint8_t type = out->type;
    *out = hostwait_cai_int_of(value);
    out->type = type;
    return true;
  }
  out->negative = overflow < 0;
  out->wide = 1;
  if (overflow < 0) return true;
  out->magnitude = PyLong_AsUnsignedLongLong(number);
  if (!PyErr_Occurred()) {
    out->wide = 0;
  } else {
    if (!PyErr_ExceptionMatches(PyExc_OverflowError)) return false;
    PyErr_Clear();
    out->magnitude = 0;
  }
  return true;
}

/* Any value where an integer is expected. False with the exception of foreign code. */
inline bool read_int(PyObject* value, hostwait_cai_int* out, bool may_be_stream = false) noexcept {
  *out = hostwait_cai_int{};
  out->type = type_of(value);
  if (out->type == HOSTWAIT_CAI_T_INT || out->type == HOSTWAIT_CAI_T_BOOL)
    return read_long(value, out);
  if (out->type == HOSTWAIT_CAI_T_INDEX) {
    ref number = ref::steal(PyNumber_Index(value));
    if (number) return read_long(number.get(), out);
    // numpy.bool_ has the slot and refuses.
    if (!PyErr_ExceptionMatches(PyExc_TypeError)) return false;
    PyErr_Clear();
    out->type = HOSTWAIT_CAI_T_OTHER;
  }
  if (out->type == HOSTWAIT_CAI_T_OTHER && may_be_stream) {
    ref method;
    if (!optional_attribute(value, state().cuda_stream, method)) return false;
    if (!method) return true;
    ref pair = ref::steal(PyObject_CallObject(method.get(), nullptr));
    if (!pair) return false;
    if (!PyTuple_Check(pair.get()) || PyTuple_Size(pair.get()) != 2) return true;
    if (!read_int(PyTuple_GetItem(pair.get(), 1), out)) return false;
    const bool is_int = out->type == HOSTWAIT_CAI_T_INT || out->type == HOSTWAIT_CAI_T_INDEX;
    out->type = is_int ? HOSTWAIT_CAI_T_CUDA_STREAM : HOSTWAIT_CAI_T_OTHER;
  }
  return true;
}

/* shape and strides. `value` becomes a tuple where it was a list. */
inline bool read_ints(ref& value, uint8_t* type, hostwait_cai_int* items,
                      uint64_t* length) noexcept {
  *type = type_of(value.get());
  *length = 0;
  if (*type == HOSTWAIT_CAI_T_LIST) value = ref::steal(PyList_AsTuple(value.get()));
  if (*type != HOSTWAIT_CAI_T_LIST && *type != HOSTWAIT_CAI_T_TUPLE) return true;
  if (!value) return false;
  const Py_ssize_t size = PyTuple_Size(value.get());
  *length = static_cast<uint64_t>(size);
  for (Py_ssize_t i = 0; i < size && i <= HOSTWAIT_CAI_MAX_NDIM; ++i)
    if (!read_int(PyTuple_GetItem(value.get(), i), &items[i])) return false;
  return true;
}

inline bool read_text(PyObject* value, const char** text, uint64_t* length) noexcept {
  Py_ssize_t size = 0;
  *text = "";
  *length = 0;
  if (PyBytes_Check(value)) {
    char* bytes = nullptr;
    if (PyBytes_AsStringAndSize(value, &bytes, &size) != 0) return false;
    *text = bytes;
  } else {
    *text = PyUnicode_AsUTF8AndSize(value, &size);
    if (*text == nullptr) {  // lone surrogates: certainly no typestr
      PyErr_Clear();
      *text = "";
      size = 0;
    }
  }
  *length = static_cast<uint64_t>(size);
  return true;
}

/* descr as almost all producers give it, [("", typestr)]. False: something else, no exception. */
inline bool read_only_field(PyObject* list, parsed& out) noexcept {
  if (PyList_Size(list) != 1) return false;
  ref field = ref::borrow(PyList_GetItem(list, 0));
  if (!PyTuple_Check(field.get()) || PyTuple_Size(field.get()) != 2) return false;
  ref type = ref::borrow(PyTuple_GetItem(field.get(), 1));
  if (!PyUnicode_Check(type.get())) return false;
  read_text(type.get(), &out.only_field.typestr, &out.only_field.typestr_len);
  out.only_field.count = 1;
  out.only_owner = std::move(type);
  return true;
}

constexpr int max_descr_depth = 8;
constexpr size_t max_descr_fields = 1024;

/* One level of descr: a list of (name, typestr or list, shape). False: not of that form, or too
 * deep or long (no exception), or an exception. */
inline bool read_fields(PyObject* list, uint64_t repeat, int depth, parsed& out) {
  if (depth > max_descr_depth || !PyList_Check(list)) return false;
  ref copy = ref::steal(PyList_AsTuple(list));
  if (!copy) return false;
  for (Py_ssize_t i = 0; i < PyTuple_Size(copy.get()); ++i) {
    PyObject* field = PyTuple_GetItem(copy.get(), i);
    const bool tuple = PyTuple_Check(field);
    const Py_ssize_t size = tuple ? PyTuple_Size(field) : 0;
    if (size < 2 || size > 3 || out.fields.size() >= max_descr_fields) return false;
    uint64_t count = repeat;
    if (size == 3) {
      PyObject* shape = PyTuple_GetItem(field, 2);
      if (!PyTuple_Check(shape)) return false;
      for (Py_ssize_t d = 0; d < PyTuple_Size(shape); ++d) {
        hostwait_cai_int item;
        if (!read_int(PyTuple_GetItem(shape, d), &item)) return false;
        const bool is_int = item.type == HOSTWAIT_CAI_T_INT || item.type == HOSTWAIT_CAI_T_INDEX;
        if (!is_int || item.negative || item.wide ||
            __builtin_mul_overflow(count, item.magnitude, &count))
          return false;
      }
    }
    PyObject* type = PyTuple_GetItem(field, 1);
    if (PyList_Check(type)) {
      if (!read_fields(type, count, depth + 1, out)) return false;
    } else if (PyUnicode_Check(type)) {
      hostwait_cai_field item{};
      if (!read_text(type, &item.typestr, &item.typestr_len)) return false;
      item.count = count;
      out.fields.push_back(item);
      out.field_owners.push_back(ref::borrow(type));
    } else {
      return false;
    }
  }
  return true;
}

inline bool lookup(PyObject* container, bool is_dict, PyObject* key, ref& out,
                   Py_ssize_t& found) noexcept {
  if (is_dict) {
    out = ref::borrow(PyDict_GetItemWithError(container, key));
    if (!out && PyErr_Occurred()) return false;
  } else {
    out = ref::steal(PyObject_GetItem(container, key));
    if (!out) {
      if (!PyErr_ExceptionMatches(PyExc_KeyError)) return false;
      PyErr_Clear();
    }
  }
  if (out) ++found;
  return true;
}

/* `out.raw` of `container`. `mapping`: a mapping that is no dict is read, too. False with an
 * exception of foreign code; whatever is merely wrong is left to the validator. */
inline bool parse(PyObject* container, bool mapping, parsed& out, bool inside_mask = false) {
  const module_state& s = state();
  hostwait_cai_raw& raw = out.raw;
  raw = hostwait_cai_raw{};
  raw.size = sizeof raw;
  raw.container = type_of(container);
  const bool is_dict = raw.container == HOSTWAIT_CAI_T_DICT;
  if (raw.container == HOSTWAIT_CAI_T_OTHER && PyMapping_Check(container))
    raw.container = HOSTWAIT_CAI_T_MAPPING;
  if (!is_dict && !(mapping && raw.container == HOSTWAIT_CAI_T_MAPPING)) return true;

  Py_ssize_t found = 0;
  const auto get = [&](PyObject* key, ref& value) {
    return lookup(container, is_dict, key, value, found);
  };
  if (!get(s.shape, out.shape) || !get(s.typestr, out.typestr) || !get(s.data, out.data) ||
      !get(s.version, out.version) || !get(s.strides, out.strides) || !get(s.descr, out.descr) ||
      !get(s.mask, out.mask_object) || !get(s.stream, out.stream))
    return false;
  const Py_ssize_t size = is_dict ? PyDict_Size(container) : PyMapping_Size(container);
  if (size < 0) return false;
  const Py_ssize_t unknown = size > found ? size - found : 0;
  raw.unknown_keys = static_cast<uint8_t>(unknown > 255 ? 255 : unknown);

  raw.typestr_type = type_of(out.typestr.get());
  if ((raw.typestr_type == HOSTWAIT_CAI_T_STR || raw.typestr_type == HOSTWAIT_CAI_T_BYTES) &&
      !read_text(out.typestr.get(), &raw.typestr, &raw.typestr_len))
    return false;
  if (!read_ints(out.shape, &raw.shape_type, out.shape_items, &raw.shape_len) ||
      !read_ints(out.strides, &raw.strides_type, out.stride_items, &raw.strides_len))
    return false;
  raw.shape = out.shape_items;
  raw.strides = out.stride_items;

  raw.data_type = type_of(out.data.get());
  if (raw.data_type == HOSTWAIT_CAI_T_LIST) out.data = ref::steal(PyList_AsTuple(out.data.get()));
  if (raw.data_type == HOSTWAIT_CAI_T_LIST || raw.data_type == HOSTWAIT_CAI_T_TUPLE) {
    if (!out.data) return false;
    raw.data_len = static_cast<uint64_t>(PyTuple_Size(out.data.get()));
    if (raw.data_len > 0 && !read_int(PyTuple_GetItem(out.data.get(), 0), &raw.data_ptr))
      return false;
    if (raw.data_len > 1 && !read_int(PyTuple_GetItem(out.data.get(), 1), &raw.data_readonly))
      return false;
  }
  if (!read_int(out.version.get(), &raw.version) || !read_int(out.stream.get(), &raw.stream, true))
    return false;

  raw.descr_type = type_of(out.descr.get());
  if (raw.descr_type == HOSTWAIT_CAI_T_LIST) {
    if (read_only_field(out.descr.get(), out)) {
      raw.descr = &out.only_field;
      raw.descr_len = 1;
    } else if (read_fields(out.descr.get(), 1, 0, out)) {
      raw.descr = out.fields.data();
      raw.descr_len = out.fields.size();
    } else {
      if (PyErr_Occurred()) return false;
      raw.descr_type = HOSTWAIT_CAI_T_OTHER;
    }
  }

  raw.mask_type = type_of(out.mask_object.get());
  if (raw.mask_type == HOSTWAIT_CAI_T_ABSENT || raw.mask_type == HOSTWAIT_CAI_T_NONE) return true;
  raw.mask_type = HOSTWAIT_CAI_T_OBJECT;
  if (inside_mask) return true;  // one level only: a mask of a mask is refused unseen
  ref inner;
  if (!optional_attribute(out.mask_object.get(), s.cai, inner)) return false;
  if (!inner) return true;
  out.mask = std::make_unique<parsed>();
  if (!parse(inner.get(), mapping, *out.mask, true)) return false;
  raw.mask = &out.mask->raw;
  raw.mask_type = out.mask->raw.container;
  return true;
}

}  // namespace hostwait::cai::py::detail
