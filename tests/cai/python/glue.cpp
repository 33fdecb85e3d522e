// SPDX-License-Identifier: Apache-2.0
// Copyright The hostwait authors
// Extension module for the tests of cai_python.hpp: views, uses and exports as Python objects.
// Structs of cai.h travel as bytes (hostwait/_cai_abi.py lays them out).
#include <hostwait/cai_python.hpp>

#include <string_view>

namespace cai = hostwait::cai::py;

namespace {

struct view_object {
  PyObject_HEAD cai::view view;
};
struct use_object {
  PyObject_HEAD std::optional<cai::use> use;
};
PyObject *view_type, *use_type;

template <class object>
object* as(PyObject* self) {
  return reinterpret_cast<object*>(self);
}
template <class function>
PyCFunction method(function* f) {
  return reinterpret_cast<PyCFunction>(reinterpret_cast<void*>(f));
}
template <class type>
PyObject* bytes_of(const type& value) {
  return PyBytes_FromStringAndSize(reinterpret_cast<const char*>(&value), sizeof value);
}

/* Policies come as bytes, or None for the default. */
bool read_policy(PyObject* object, hostwait_cai_policy& policy) {
  if (object == Py_None) return true;
  char* bytes;
  Py_ssize_t size;
  if (PyBytes_AsStringAndSize(object, &bytes, &size) != 0) return false;
  if (static_cast<size_t>(size) != sizeof policy) {
    PyErr_SetString(PyExc_ValueError, "size of the policy");
    return false;
  }
  std::memcpy(&policy, bytes, sizeof policy);
  return true;
}

template <class object>
void destroy(PyObject* self) {
  auto* type = reinterpret_cast<PyObject*>(Py_TYPE(self));
  as<object>(self)->~object();
  PyObject_Free(self);
  Py_DECREF(type);
}

PyObject* wrap(std::optional<cai::view> view) {
  if (!view) return nullptr;
  auto* self = PyObject_New(view_object, reinterpret_cast<PyTypeObject*>(view_type));
  if (self != nullptr) new (&self->view) cai::view(std::move(*view));
  return reinterpret_cast<PyObject*>(self);
}

PyObject* make_view(PyObject*, PyObject* args, PyObject* keywords) {
  static const char* names[] = {"object",       "policy",         "prefer",       "consumer",
                                "other_thread", "ignores_stream", "capture_safe", "from_dict",
                                "owner",        nullptr};
  PyObject *object, *policy = Py_None, *owner = nullptr;
  const char* prefer = "automatic";
  unsigned long long consumer = 0;
  int other_thread = 0, ignores_stream = 0, capture_safe = 0, from_dict = 0;
  if (!PyArg_ParseTupleAndKeywords(args, keywords, "O|OsKppppO", const_cast<char**>(names), &object,
                                   &policy, &prefer, &consumer, &other_thread, &ignores_stream,
                                   &capture_safe, &from_dict, &owner))
    return nullptr;
  cai::options options;
  if (!read_policy(policy, options.policy)) return nullptr;
  options.prefer = std::string_view(prefer) == "dlpack" ? cai::source::dlpack
                   : std::string_view(prefer) == "cai"  ? cai::source::cai
                                                        : cai::source::automatic;
  options.consumer = consumer;
  options.other_thread = other_thread;
  options.ignores_stream = ignores_stream;
  options.capture_safe = capture_safe;
  auto view =
      from_dict ? cai::view::from_dict(object, owner, options) : cai::view::from(object, options);
  return wrap(std::move(view));
}

/* The default view without a keyword: what the cost is measured with. */
PyObject* make_quick_view(PyObject*, PyObject* object) {
  return wrap(cai::view::from(object));
}

PyObject* view_desc(PyObject* self, void*) {
  return bytes_of(as<view_object>(self)->view.desc());
}
PyObject* view_mask(PyObject* self, void*) {
  const hostwait_cai_desc* mask = as<view_object>(self)->view.mask();
  if (mask == nullptr) Py_RETURN_NONE;
  return bytes_of(*mask);
}
PyObject* view_source(PyObject* self, void*) {
  return PyUnicode_FromString(
      as<view_object>(self)->view.made_from() == cai::source::cai ? "cai" : "dlpack");
}
PyObject* view_locate(PyObject* self, PyObject* policy_bytes) {
  cai::options options;
  if (!read_policy(policy_bytes, options.policy)) return nullptr;
  const hostwait_cai_loc* loc = as<view_object>(self)->view.locate(options.policy);
  return loc != nullptr ? bytes_of(*loc) : nullptr;
}

PyObject* make_use(PyObject*, PyObject* args, PyObject* keywords) {
  static const char* names[] = {"how", "stream", "views", "policy", "keep_alive", nullptr};
  const char* how;
  unsigned long long stream;
  PyObject *views, *policy = Py_None;
  int keep_alive = 1;
  if (!PyArg_ParseTupleAndKeywords(args, keywords, "sKO|Op", const_cast<char**>(names), &how,
                                   &stream, &views, &policy, &keep_alive))
    return nullptr;
  cai::options options;
  if (!read_policy(policy, options.policy)) return nullptr;
  options.keep_alive = keep_alive;
  std::vector<cai::view*> arrays;
  for (Py_ssize_t i = 0; i < PyTuple_Size(views); ++i)
    arrays.push_back(&as<view_object>(PyTuple_GetItem(views, i))->view);
  const std::string_view mode = how;
  auto use = mode == "stream"
                 ? cai::use::acquire(hostwait_cai_stream_value(stream), arrays, options)
             : mode == "poll" ? cai::use::acquire_host(arrays, options)
                              : cai::use::wait_host(arrays, options);
  if (!use) return nullptr;
  auto* self = PyObject_New(use_object, reinterpret_cast<PyTypeObject*>(use_type));
  if (self != nullptr) new (&self->use) std::optional<cai::use>(std::move(use));
  return reinterpret_cast<PyObject*>(self);
}

PyObject* use_release(PyObject* self, PyObject*) {
  if (!as<use_object>(self)->use->release()) return nullptr;
  Py_RETURN_NONE;
}
PyObject* use_destroy(PyObject* self, PyObject*) {
  as<use_object>(self)->use.reset();
  Py_RETURN_NONE;
}
PyObject* use_move(PyObject* self, PyObject*) {
  auto& use = as<use_object>(self)->use;
  std::optional<cai::use> moved(std::move(use));  // the shell left behind owes nothing
  use.reset();
  use.emplace(std::move(*moved));
  Py_RETURN_NONE;
}
PyObject* use_poll(PyObject* self, PyObject*) {
  bool done = false;
  if (!as<use_object>(self)->use->poll(done)) return nullptr;
  return PyBool_FromLong(done);
}
PyObject* use_attach(PyObject* self, PyObject* stream) {
  const unsigned long long value = PyLong_AsUnsignedLongLong(stream);
  if (PyErr_Occurred() || !as<use_object>(self)->use->attach(hostwait_cai_stream_value(value)))
    return nullptr;
  Py_RETURN_NONE;
}

/* What to_dict and to_dlpack share: typestr, ptr, shape, element strides or None, readonly,
 * pending, chosen, flags, version, stream owner or None. */
struct export_request {
  cai::produced array;
  std::vector<int64_t> shape, strides;
  std::vector<hostwait_cai_stream> pending;
};

bool read_ints(PyObject* tuple, std::vector<int64_t>& out) {
  for (Py_ssize_t i = 0; i < PyTuple_Size(tuple); ++i)
    out.push_back(PyLong_AsLongLong(PyTuple_GetItem(tuple, i)));
  return !PyErr_Occurred();
}

bool read_export(PyObject* spec, export_request& out) {
  const char* typestr;
  unsigned long long ptr, chosen;
  PyObject *shape, *strides, *pending, *owner;
  int readonly, flags, version;
  if (!PyArg_ParseTuple(spec, "sKOOpOKiiO", &typestr, &ptr, &shape, &strides, &readonly, &pending,
                        &chosen, &flags, &version, &owner) ||
      !read_ints(shape, out.shape) || (strides != Py_None && !read_ints(strides, out.strides)))
    return false;
  for (Py_ssize_t i = 0; i < PyTuple_Size(pending); ++i)
    out.pending.push_back(
        hostwait_cai_stream_value(PyLong_AsUnsignedLongLong(PyTuple_GetItem(pending, i))));
  if (PyErr_Occurred()) return false;
  hostwait_cai_error error;
  HOSTWAIT_CAI_INIT(error);
  if (hostwait_cai_describe(typestr, ptr, static_cast<uint32_t>(out.shape.size()), out.shape.data(),
                            strides != Py_None ? out.strides.data() : nullptr, readonly,
                            &out.array.desc, &error) != HOSTWAIT_CAI_OK)
    return cai::set_error(error);
  out.array.pending = out.pending;
  out.array.chosen = hostwait_cai_stream_value(chosen);
  out.array.flags = static_cast<uint32_t>(flags);
  out.array.version = version;
  out.array.stream_owner = owner != Py_None ? owner : nullptr;
  return true;
}

PyObject* make_dict(PyObject*, PyObject* spec) {
  export_request request;
  return read_export(spec, request) ? cai::to_dict(request.array) : nullptr;
}

/* make_dlpack(spec, owner, keywords, copy or None): copy(address) fills host memory. */
PyObject* make_dlpack(PyObject*, PyObject* args) {
  PyObject *spec, *owner, *keywords, *copy;
  if (!PyArg_ParseTuple(args, "OOOO", &spec, &owner, &keywords, &copy)) return nullptr;
  export_request request;
  if (!read_export(spec, request)) return nullptr;
  if (copy != Py_None) {
    request.array.user = copy;
    request.array.copy_to_host = [](void* user, void* to) {
      cai::ref done = cai::ref::steal(
          PyObject_CallFunction(static_cast<PyObject*>(user), "K",
                                static_cast<unsigned long long>(reinterpret_cast<uintptr_t>(to))));
      return static_cast<bool>(done);
    };
  }
  const cai::ref none = cai::ref::steal(PyTuple_New(0));
  return cai::to_dlpack(request.array, owner, none.get(), keywords);
}

PyObject* collect(PyObject*, PyObject*) {
  size_t left = 0;
  return cai::collect(&left) ? PyLong_FromSize_t(left) : nullptr;
}

/* What the interpreter's exit does, early, and back: owners leak meanwhile. */
PyObject* set_finalizing(PyObject*, PyObject* yes) {
  cai::detail::state().finalizing.store(PyObject_IsTrue(yes) == 1);
  Py_RETURN_NONE;
}

PyObject* sizes(PyObject*, PyObject*) {
  return Py_BuildValue("{s:i,s:i,s:i,s:i,s:i,s:i,s:i,s:i,s:i,s:i}", "error",
                       int(sizeof(hostwait_cai_error)), "int", int(sizeof(hostwait_cai_int)), "raw",
                       int(sizeof(hostwait_cai_raw)), "policy", int(sizeof(hostwait_cai_policy)),
                       "desc", int(sizeof(hostwait_cai_desc)), "loc", int(sizeof(hostwait_cai_loc)),
                       "ready", int(sizeof(hostwait_cai_ready)), "ticket",
                       int(sizeof(hostwait_cai_ticket)), "stats", int(sizeof(hostwait_cai_stats)),
                       "driver", int(sizeof(hostwait_cai_driver)));
}

PyMethodDef view_methods[] = {{"locate", view_locate, METH_O, nullptr}, {}};
PyGetSetDef view_getters[] = {{"desc", view_desc, nullptr, nullptr, nullptr},
                              {"mask", view_mask, nullptr, nullptr, nullptr},
                              {"source", view_source, nullptr, nullptr, nullptr},
                              {}};
PyType_Slot view_slots[] = {{Py_tp_dealloc, reinterpret_cast<void*>(destroy<view_object>)},
                            {Py_tp_methods, view_methods},
                            {Py_tp_getset, view_getters},
                            {}};
PyMethodDef use_methods[] = {
    {"release", use_release, METH_NOARGS, nullptr}, {"destroy", use_destroy, METH_NOARGS, nullptr},
    {"move", use_move, METH_NOARGS, nullptr},       {"poll", use_poll, METH_NOARGS, nullptr},
    {"attach", use_attach, METH_O, nullptr},        {}};
PyType_Slot use_slots[] = {{Py_tp_dealloc, reinterpret_cast<void*>(destroy<use_object>)},
                           {Py_tp_methods, use_methods},
                           {}};
constexpr unsigned flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION;
PyType_Spec view_spec = {"hostwait_cai_glue.view", sizeof(view_object), 0, flags, view_slots};
PyType_Spec use_spec = {"hostwait_cai_glue.use", sizeof(use_object), 0, flags, use_slots};

PyMethodDef functions[] = {{"view", method(make_view), METH_VARARGS | METH_KEYWORDS, nullptr},
                           {"quick_view", make_quick_view, METH_O, nullptr},
                           {"use", method(make_use), METH_VARARGS | METH_KEYWORDS, nullptr},
                           {"to_dict", make_dict, METH_O, nullptr},
                           {"to_dlpack", make_dlpack, METH_VARARGS, nullptr},
                           {"collect", collect, METH_NOARGS, nullptr},
                           {"set_finalizing", set_finalizing, METH_O, nullptr},
                           {"sizes", sizes, METH_NOARGS, nullptr},
                           {}};
PyModuleDef definition = {PyModuleDef_HEAD_INIT,
                          "hostwait_cai_glue",
                          nullptr,
                          -1,
                          functions,
                          nullptr,
                          nullptr,
                          nullptr,
                          nullptr};

}  // namespace

PyMODINIT_FUNC PyInit_hostwait_cai_glue() {
  view_type = PyType_FromSpec(&view_spec);
  use_type = PyType_FromSpec(&use_spec);
  return view_type != nullptr && use_type != nullptr ? PyModule_Create(&definition) : nullptr;
}
