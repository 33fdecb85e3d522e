// SPDX-License-Identifier: Apache-2.0
// Copyright The hostwait authors
// Exporting an array: the dict of __cuda_array_interface__, __dlpack__ and __dlpack_device__.
// Part of cai_python.hpp.
#pragma once

#include <hostwait/cai_python/dlpack.hpp>
#include <hostwait/cai_python/parse.hpp>

#include <algorithm>
#include <cstdlib>
#include <span>

namespace hostwait::cai::py {

/* An array of the caller's, as it is to be shown to others. */
struct produced {
  hostwait_cai_desc desc;  // hostwait_cai_describe fills it
  int32_t device = 0;
  int device_type = HOSTWAIT_CAI_DL_CUDA;
  std::span<const hostwait_cai_stream> pending;  // every stream with work on the array
  hostwait_cai_stream chosen{};                  // exported; the others are joined into it
  uint32_t flags = 0;                            // HOSTWAIT_CAI_EXPORT_…
  int32_t version = 0;                           // 0: the environment's, default 3
  void* stream_owner = nullptr;                  // what keeps `chosen` alive, or EXPORT_KEPT
  // For __dlpack__(dl_device=(kDLCPU, 0)): copies the array, in C order, to `to`; the data are
  // ready then. Without it the request is refused. False with an exception set.
  bool (*copy_to_host)(void* user, void* to) = nullptr;
  void* user = nullptr;

  produced() noexcept { HOSTWAIT_CAI_INIT(desc); }
};

namespace detail {

inline ref int_tuple(const int64_t* values, uint32_t count) noexcept {
  ref tuple = ref::steal(PyTuple_New(static_cast<Py_ssize_t>(count)));
  for (uint32_t i = 0; tuple && i < count; ++i) {
    PyObject* item = PyLong_FromLongLong(values[i]);
    if (item == nullptr || PyTuple_SetItem(tuple.get(), static_cast<Py_ssize_t>(i), item) != 0)
      return {};
  }
  return tuple;
}

/* Behind an exported capsule: the tensor and the reference to its owner. Deleted by the consumer,
 * on any thread; the reference goes under the GIL. */
struct exported_tensor : droppable {
  dl_managed plain;
  dl_managed_versioned versioned;
  int64_t shape[HOSTWAIT_CAI_MAX_NDIM], strides[HOSTWAIT_CAI_MAX_NDIM];
  PyObject* owner;
  void* host_copy;
};

inline void drop_exported(droppable* item) noexcept {
  auto* tensor = static_cast<exported_tensor*>(item);
  Py_XDECREF(tensor->owner);
  std::free(tensor->host_copy);
  delete tensor;
}

inline void free_unused_capsule(PyObject* capsule) noexcept {
  const char* name = PyCapsule_GetName(capsule);
  if (name == nullptr || std::strncmp(name, "used_", 5) == 0) return;
  void* managed = PyCapsule_GetPointer(capsule, name);
  void* context = std::strcmp(name, "dltensor") == 0
                      ? static_cast<dl_managed*>(managed)->context
                      : static_cast<dl_managed_versioned*>(managed)->context;
  drop_exported(static_cast<exported_tensor*>(context));
}

/* Does for __dlpack__(stream=) what the consumer is owed. False with an exception set. */
inline bool order_consumer(const produced& array, hostwait_cai_dl_action action,
                           uint64_t stream) noexcept {
  if (action == HOSTWAIT_CAI_DL_NO_SYNC) return true;
  hostwait_cai_policy policy;
  HOSTWAIT_CAI_INIT(policy);
  hostwait_cai_policy_init(&policy);
  policy.sync = HOSTWAIT_CAI_SYNC_ON;  // consumers' switches do not touch a producer's duty
  policy.options |= HOSTWAIT_CAI_NO_BACK_EDGE;  // DLPack knows no way back
  hostwait_cai_error error;
  HOSTWAIT_CAI_INIT(error);
  int code = HOSTWAIT_CAI_OK;
  {
    no_gil_scope scope;
    for (const hostwait_cai_stream pending : array.pending) {
      hostwait_cai_ready ready;
      HOSTWAIT_CAI_INIT(ready);
      ready.kind = HOSTWAIT_CAI_READY_STREAM;
      ready.stream = pending.value;
      ready.device = array.device;
      ready.ptr = array.desc.ptr;
      if (action == HOSTWAIT_CAI_DL_HOST) {
        code = hostwait_cai_wait_host(&ready, 1, &policy, nullptr, &error);
      } else {
        hostwait_cai_ticket ticket;
        HOSTWAIT_CAI_INIT(ticket);
        code = hostwait_cai_acquire(&ready, 1, hostwait_cai_stream_value(stream), &policy, &ticket,
                                    &error);
        if (code == HOSTWAIT_CAI_OK) code = hostwait_cai_release(&ticket, &error);
      }
      if (code != HOSTWAIT_CAI_OK) break;
    }
  }
  return code == HOSTWAIT_CAI_OK || set_error(error);
}

inline bool buffer_error(const char* text) noexcept {
  PyErr_SetString(PyExc_BufferError, text);
  return false;
}

inline bool read_pair(PyObject* pair, const char* name, int& first, int& second) noexcept {
  if (PyTuple_Check(pair)) return PyArg_ParseTuple(pair, "ii", &first, &second);
  PyErr_Format(PyExc_TypeError, "%s is no tuple", name);
  return false;
}

struct dlpack_request {
  hostwait_cai_int stream{};
  bool versioned = false;
  bool to_host = false;
  bool copy = false;
};

inline bool read_request(const produced& array, PyObject* args, PyObject* keywords,
                         dlpack_request& out) noexcept {
  static const char* names[] = {"stream", "max_version", "dl_device", "copy", nullptr};
  PyObject *stream = Py_None, *version = Py_None, *device = Py_None, *copy = Py_None;
  if (!PyArg_ParseTupleAndKeywords(args, keywords, "|$OOOO:__dlpack__", const_cast<char**>(names),
                                   &stream, &version, &device, &copy) ||
      !read_int(stream, &out.stream))
    return false;
  int major = 0, minor = 0, type = 0, id = 0;
  if (version != Py_None) {
    if (!read_pair(version, "max_version", major, minor)) return false;
    out.versioned = major >= 1;
  }
  if (device != Py_None) {
    if (!read_pair(device, "dl_device", type, id)) return false;
    out.to_host = type == HOSTWAIT_CAI_DL_CPU;
    if (!out.to_host && (type != array.device_type || id != array.device))
      return buffer_error("the array cannot be exported to that device");
  }
  out.copy = copy == Py_True;
  if (out.copy && !out.to_host) return buffer_error("no copy is made on the device");
  return true;
}

}  // namespace detail

/* The dict of __cuda_array_interface__: joins the pending streams into the chosen one first. Null
 * with an exception set. */
inline PyObject* to_dict(const produced& array) {
  if (!detail::enter()) return nullptr;
  detail::drop_due();
  hostwait_cai_export request;
  HOSTWAIT_CAI_INIT(request);
  request.flags = array.flags;
  request.version = array.version;
  request.pending = array.pending.data();
  request.pending_count = array.pending.size();
  request.chosen = array.chosen;
  request.stream_owner = array.stream_owner;
  hostwait_cai_exported result;
  HOSTWAIT_CAI_INIT(result);
  hostwait_cai_error error;
  HOSTWAIT_CAI_INIT(error);
  int code;
  if (array.pending.size() > 1) {
    no_gil_scope scope;
    code = hostwait_cai_export_prepare(&request, &result, &error);
  } else {
    code = hostwait_cai_export_prepare(&request, &result, &error);
  }
  if (code != HOSTWAIT_CAI_OK) {
    set_error(error);
    return nullptr;
  }
  const hostwait_cai_desc& desc = array.desc;
  char typestr[64];
  if (hostwait_cai_typestr(&desc, typestr, sizeof typestr) == 0) {
    set_error(HOSTWAIT_CAI_ERR_TYPESTR, "typestr", "the description has no spelling");
    return nullptr;
  }
  const auto none = [] { return ref::borrow(Py_None); };
  ref dict = ref::steal(PyDict_New());
  const auto put = [&](const char* key, ref value) {
    return dict && value && PyDict_SetItemString(dict.get(), key, value.get()) == 0;
  };
  const bool contiguous = desc.flags & HOSTWAIT_CAI_F_C_CONTIGUOUS;
  if (!put("shape", detail::int_tuple(desc.shape, desc.ndim)) ||
      !put("typestr", ref::steal(PyUnicode_FromString(typestr))) ||
      !put("data", ref::steal(Py_BuildValue("(KO)", static_cast<unsigned long long>(desc.ptr),
                                            desc.readonly ? Py_True : Py_False))) ||
      !put("version", ref::steal(PyLong_FromLong(result.version))) ||
      !put("strides", contiguous ? none() : detail::int_tuple(desc.strides, desc.ndim)))
    return nullptr;
  if (result.stream_state == HOSTWAIT_CAI_STREAM_NONE && !put("stream", none())) return nullptr;
  if (result.stream_state == HOSTWAIT_CAI_STREAM_VALUE &&
      !put("stream", ref::steal(PyLong_FromUnsignedLongLong(result.stream))))
    return nullptr;
  return dict.release();
}

/* (device type, ordinal) for __dlpack_device__. */
inline PyObject* dlpack_device(const produced& array) {
  return Py_BuildValue("(ii)", array.device_type, static_cast<int>(array.device));
}

/* The capsule of __dlpack__(*, stream, max_version, dl_device, copy); `owner` is referenced until
 * the consumer deletes the tensor. Null with an exception set. */
inline PyObject* to_dlpack(const produced& array, PyObject* owner, PyObject* args,
                           PyObject* keywords) {
  if (!detail::enter()) return nullptr;
  detail::drop_due();
  detail::dlpack_request request;
  if (!detail::read_request(array, args, keywords, request)) return nullptr;
  const hostwait_cai_desc& desc = array.desc;
  hostwait_cai_error error;
  HOSTWAIT_CAI_INIT(error);
  hostwait_cai_dl_action action;
  uint64_t stream = 0;
  detail::dl_dtype dtype;
  if (hostwait_cai_dlpack_stream(&request.stream, array.device_type,
                                 request.to_host ? HOSTWAIT_CAI_DL_CPU : 0, &action, &stream,
                                 &error) != HOSTWAIT_CAI_OK ||
      hostwait_cai_dlpack_dtype(&desc, &dtype.code, &dtype.bits, &dtype.lanes, &error) !=
          HOSTWAIT_CAI_OK) {
    set_error(error);
    return nullptr;
  }
  if (desc.readonly && !request.versioned && !request.to_host) {
    detail::buffer_error("a read-only array needs max_version=(1, 0) or later");
    return nullptr;
  }
  if (request.to_host && array.copy_to_host == nullptr) {
    detail::buffer_error("the array cannot be copied to the host");
    return nullptr;
  }
  auto* tensor = new (std::nothrow) detail::exported_tensor{};
  if (tensor == nullptr) return PyErr_NoMemory();
  tensor->drop = detail::drop_exported;
  const auto fail = [&]() -> PyObject* {
    detail::drop_exported(tensor);
    return nullptr;
  };
  std::copy_n(desc.shape, desc.ndim, tensor->shape);
  const bool element_strides =
      hostwait_cai_element_strides(&desc, tensor->strides, &error) == HOSTWAIT_CAI_OK;
  if (!element_strides && !request.to_host) {
    set_error(error);
    return fail();
  }
  if (!detail::order_consumer(array, action, stream)) return fail();

  detail::dl_tensor shown{};
  shown.data = reinterpret_cast<void*>(static_cast<uintptr_t>(desc.ptr));
  shown.device = {array.device_type, array.device};
  if (request.to_host) {
    tensor->host_copy = std::malloc(desc.nbytes != 0 ? desc.nbytes : 1);
    if (tensor->host_copy == nullptr) {
      PyErr_NoMemory();
      return fail();
    }
    if (!array.copy_to_host(array.user, tensor->host_copy)) return fail();
    shown.data = tensor->host_copy;
    shown.device = {HOSTWAIT_CAI_DL_CPU, 0};
    int64_t step = 1;
    for (uint32_t i = desc.ndim; i-- > 0; step *= desc.shape[i]) tensor->strides[i] = step;
  }
  shown.ndim = static_cast<int32_t>(desc.ndim);
  shown.dtype = dtype;
  shown.shape = tensor->shape;
  shown.strides = tensor->strides;

  // The consumer may call the deleter on any thread and without the GIL.
  tensor->plain = {shown, tensor, [](detail::dl_managed* m) {
                     detail::bury(static_cast<detail::exported_tensor*>(m->context));
                   }};
  tensor->versioned = {1,
                       0,
                       tensor,
                       [](detail::dl_managed_versioned* m) {
                         detail::bury(static_cast<detail::exported_tensor*>(m->context));
                       },
                       (desc.readonly && !request.to_host ? detail::dl_read_only : 0) |
                           (request.to_host ? detail::dl_is_copied : 0),
                       shown};
  PyObject* capsule =
      request.versioned
          ? PyCapsule_New(&tensor->versioned, "dltensor_versioned", detail::free_unused_capsule)
          : PyCapsule_New(&tensor->plain, "dltensor", detail::free_unused_capsule);
  if (capsule == nullptr) return fail();
  if (!request.to_host) {
    Py_INCREF(owner);
    tensor->owner = owner;
  }
  return capsule;
}

}  // namespace hostwait::cai::py
