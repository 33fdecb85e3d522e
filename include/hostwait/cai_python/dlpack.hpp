// SPDX-License-Identifier: Apache-2.0
// Copyright The hostwait authors
// DLPack from Python: the structs, calling __dlpack__, taking a capsule over, the C exchange table.
// Part of cai_python.hpp.
#pragma once

#include <hostwait/cai_python/reference.hpp>

#include <cstring>

namespace hostwait::cai::py::detail {

/* Layouts of DLPack 1.3; 0.x producers hand out the first of the two managed forms. */
struct dl_device {
  int32_t type, id;
};
struct dl_dtype {
  uint8_t code, bits;
  uint16_t lanes;
};
struct dl_tensor {
  void* data;
  dl_device device;
  int32_t ndim;
  dl_dtype dtype;
  int64_t* shape;
  int64_t* strides;
  uint64_t byte_offset;
};
struct dl_managed {
  dl_tensor tensor;
  void* context;
  void (*deleter)(dl_managed*);
};
struct dl_managed_versioned {
  uint32_t major, minor;
  void* context;
  void (*deleter)(dl_managed_versioned*);
  uint64_t flags;
  dl_tensor tensor;
};
constexpr uint64_t dl_read_only = 1, dl_is_copied = 2;

struct dl_exchange_api {
  uint32_t major, minor;
  const void* previous;
  int (*allocator)(dl_tensor*, dl_managed_versioned**, void*,
                   void (*)(void*, const char*, const char*));
  int (*managed_from_object)(void* object, dl_managed_versioned** out);
  int (*managed_to_object)(dl_managed_versioned*, void** out);
  int (*tensor_from_object)(void* object, dl_tensor* out);
  int (*current_work_stream)(int32_t device_type, int32_t device_id, void** out);
};

constexpr const char* owner_name = "hostwait.dlpack_owner";
constexpr const char* used_owner_name = "hostwait.dlpack_owner_versioned";

/* An object that owns a managed tensor and calls its deleter, under the GIL, when it dies. On
 * failure the tensor is deleted here. */
inline ref own_managed(void* managed, bool versioned) noexcept {
  const auto free_plain = [](PyObject* capsule) {
    auto* m = static_cast<dl_managed*>(PyCapsule_GetPointer(capsule, owner_name));
    if (m != nullptr && m->deleter != nullptr) m->deleter(m);
  };
  const auto free_versioned = [](PyObject* capsule) {
    auto* m = static_cast<dl_managed_versioned*>(PyCapsule_GetPointer(capsule, used_owner_name));
    if (m != nullptr && m->deleter != nullptr) m->deleter(m);
  };
  ref owner = versioned ? ref::steal(PyCapsule_New(managed, used_owner_name, free_versioned))
                        : ref::steal(PyCapsule_New(managed, owner_name, free_plain));
  if (!owner && versioned) {
    auto* m = static_cast<dl_managed_versioned*>(managed);
    if (m->deleter != nullptr) m->deleter(m);
  } else if (!owner) {
    auto* m = static_cast<dl_managed*>(managed);
    if (m->deleter != nullptr) m->deleter(m);
  }
  return owner;
}

/* object.__dlpack__(stream=stream, max_version=(1, 3)); a producer older than max_version is asked
 * again without it. Null with an exception set. */
inline ref call_dlpack(PyObject* method, long long stream) noexcept {
  const module_state& s = state();
  ref keywords = ref::steal(PyDict_New());
  ref value = ref::steal(PyLong_FromLongLong(stream));
  if (!keywords || !value || PyDict_SetItem(keywords.get(), s.stream, value.get()) != 0 ||
      PyDict_SetItem(keywords.get(), s.max_version, s.dlpack_version) != 0)
    return {};
  ref capsule = ref::steal(PyObject_Call(method, s.no_arguments, keywords.get()));
  if (capsule || !PyErr_ExceptionMatches(PyExc_TypeError)) return capsule;
  PyErr_Clear();
  if (PyDict_DelItem(keywords.get(), s.max_version) != 0) return {};
  return ref::steal(PyObject_Call(method, s.no_arguments, keywords.get()));
}

/* The stream= that asks for no ordering: -1, but for producers that take it for a handle (JAX
 * passes it on as one, by its source); they order the legacy stream, which stops nobody. */
inline long long unordered_stream(PyObject* object) noexcept {
  ref module = ref::steal(
      PyObject_GetAttrString(reinterpret_cast<PyObject*>(Py_TYPE(object)), "__module__"));
  Py_ssize_t size = 0;
  const char* name = module && PyUnicode_Check(module.get())
                         ? PyUnicode_AsUTF8AndSize(module.get(), &size)
                         : nullptr;
  if (name == nullptr) PyErr_Clear();
  return name != nullptr && std::strncmp(name, "jax", 3) == 0 ? 1 : -1;
}

/* Describes the tensor in `capsule` and takes it over: `owner` keeps it alive from then on. An
 * untaken capsule stays its own owner. False with an exception set. */
inline bool take_capsule(PyObject* capsule, const hostwait_cai_policy& policy,
                         hostwait_cai_desc& desc, hostwait_cai_loc& loc, ref& owner) noexcept {
  if (!PyCapsule_CheckExact(capsule))
    return set_error(HOSTWAIT_CAI_ERR_TYPE, "__dlpack__", "it returned no capsule");
  const char* name = PyCapsule_GetName(capsule);
  if (name == nullptr) {
    PyErr_Clear();
    return set_error(HOSTWAIT_CAI_ERR_TYPE, "__dlpack__", "it returned a capsule without a name");
  }
  void* managed = PyCapsule_GetPointer(capsule, name);
  if (managed == nullptr) return false;
  const bool versioned = std::strcmp(name, "dltensor_versioned") == 0;
  const char* used = versioned ? "used_dltensor_versioned" : "used_dltensor";
  hostwait_cai_error error;
  HOSTWAIT_CAI_INIT(error);
  const int code = hostwait_cai_from_dlpack(name, managed, &policy, &desc, &loc, &error);
  if (code == HOSTWAIT_CAI_ERR_VERSION) PyCapsule_SetName(capsule, used);  // its deleter has run
  if (code != HOSTWAIT_CAI_OK) return set_error(error);
  if (PyCapsule_SetName(capsule, used) != 0) return false;
  owner = own_managed(managed, versioned);
  return static_cast<bool>(owner);
}

/* The exchange table of the object's type, in a version that the core knows; null without one. */
inline const dl_exchange_api* exchange_api_of(PyObject* object) noexcept {
  module_state& s = state();
  auto* type = reinterpret_cast<PyObject*>(Py_TYPE(object));
  for (unsigned i = 0; i < s.seen_count; ++i)
    if (s.seen[i].type == type) return static_cast<const dl_exchange_api*>(s.seen[i].api);
  const void* api = nullptr;
  ref capsule = ref::steal(PyObject_GetAttr(type, s.exchange_api));
  if (capsule && PyCapsule_IsValid(capsule.get(), "dlpack_exchange_api"))
    api = hostwait_cai_exchange_find(PyCapsule_GetPointer(capsule.get(), "dlpack_exchange_api"));
  PyErr_Clear();
  // Full: the types seen first stay, others are looked up each time.
  if (s.seen_count < sizeof s.seen / sizeof s.seen[0]) {
    Py_INCREF(type);
    s.seen[s.seen_count++] = {type, api};
  }
  return static_cast<const dl_exchange_api*>(api);
}

}  // namespace hostwait::cai::py::detail
