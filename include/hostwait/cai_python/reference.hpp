// SPDX-License-Identifier: Apache-2.0
// Copyright The hostwait authors
// Owned references, GIL scopes, the module-wide state, and errors of the core as exceptions.
// Limited C API (3.11 and later); part of cai_python.hpp.
#pragma once

#include <Python.h>
#include <hostwait/cai.h>

#include <atomic>
#include <new>
#include <utility>

namespace hostwait::cai::py {

/* An owned reference. The GIL must be held wherever one is made, assigned or destroyed. */
class ref {
 public:
  ref() = default;
  static ref steal(PyObject* object) noexcept { return ref(object); }
  static ref borrow(PyObject* object) noexcept {
    Py_XINCREF(object);
    return ref(object);
  }
  ref(ref&& other) noexcept : object_(std::exchange(other.object_, nullptr)) {}
  ref& operator=(ref&& other) noexcept {
    // The old object goes last: its destructor may run Python code that sees this one.
    PyObject* old = std::exchange(object_, std::exchange(other.object_, nullptr));
    Py_XDECREF(old);
    return *this;
  }
  ~ref() { Py_XDECREF(object_); }

  PyObject* get() const noexcept { return object_; }
  PyObject* release() noexcept { return std::exchange(object_, nullptr); }
  ref copy() const noexcept { return borrow(object_); }
  explicit operator bool() const noexcept { return object_ != nullptr; }

 private:
  explicit ref(PyObject* object) noexcept : object_(object) {}
  PyObject* object_ = nullptr;
};

/* Takes the GIL, also where this thread holds it already. */
class gil_scope {
 public:
  gil_scope() noexcept : state_(PyGILState_Ensure()) {}
  gil_scope(const gil_scope&) = delete;
  gil_scope& operator=(const gil_scope&) = delete;
  ~gil_scope() { PyGILState_Release(state_); }

 private:
  PyGILState_STATE state_;
};

/* Gives the GIL away for a driver call that may block; `retaken` takes it back for a callback of
 * that call. */
class no_gil_scope {
 public:
  no_gil_scope() noexcept : thread_(PyEval_SaveThread()) {}
  no_gil_scope(const no_gil_scope&) = delete;
  no_gil_scope& operator=(const no_gil_scope&) = delete;
  ~no_gil_scope() { PyEval_RestoreThread(thread_); }

  class retaken {
   public:
    explicit retaken(no_gil_scope* scope) noexcept : scope_(scope) {
      if (scope_ != nullptr) PyEval_RestoreThread(scope_->thread_);
    }
    retaken(const retaken&) = delete;
    retaken& operator=(const retaken&) = delete;
    ~retaken() {
      if (scope_ != nullptr) scope_->thread_ = PyEval_SaveThread();
    }

   private:
    no_gil_scope* scope_;
  };

 private:
  PyThreadState* thread_;
};

/* Puts the pending exception aside while foreign destructors and deleters run. */
class exception_scope {
 public:
  exception_scope() noexcept { PyErr_Fetch(&type_, &value_, &trace_); }
  exception_scope(const exception_scope&) = delete;
  exception_scope& operator=(const exception_scope&) = delete;
  ~exception_scope() { PyErr_Restore(type_, value_, trace_); }

 private:
  PyObject *type_, *value_, *trace_;
};

namespace detail {

/* Something to be dropped under the GIL. Owners in HOSTWAIT_CAI_QUEUE_PYTHON begin with one, so
 * that any extension module may drain what another one retired. */
struct droppable {
  void (*drop)(droppable*);
  droppable* next;
};

/* One per extension module, never destroyed: it outlives static destructors and the interpreter. */
struct module_state {
  std::atomic<bool> finalizing{false};
  std::atomic<droppable*> graveyard{nullptr};  // given back by threads without the GIL
  bool ready = false;
  PyObject *cai, *shape, *typestr, *data, *version, *strides, *descr, *mask, *stream;
  PyObject *dlpack, *max_version, *exchange_api, *cuda_stream, *no_arguments;
  PyObject* dlpack_version;
  // Types whose exchange table was looked up; the references keep the addresses unique.
  struct seen_type {
    PyObject* type;
    const void* api;
  } seen[16];
  unsigned seen_count = 0;
};

inline module_state& state() noexcept {
  static module_state* const instance = new module_state;
  return *instance;
}

inline void drop_graveyard() noexcept {
  droppable* item = state().graveyard.exchange(nullptr, std::memory_order_acquire);
  while (item != nullptr) {
    droppable* next = item->next;
    item->drop(item);
    item = next;
  }
}

/* May be called by any thread, with or without the GIL, also from a CUDA host callback: takes no
 * lock. After the interpreter began to finalize the item leaks on purpose. */
inline void bury(droppable* item) noexcept {
  module_state& s = state();
  if (s.finalizing.load(std::memory_order_relaxed)) return;
  item->next = s.graveyard.load(std::memory_order_relaxed);
  while (!s.graveyard.compare_exchange_weak(item->next, item, std::memory_order_release,
                                            std::memory_order_relaxed)) {
  }
  // A full queue of pending calls is no loss: whoever empties it next takes the whole list.
  Py_AddPendingCall(
      [](void*) {
        drop_graveyard();
        return 0;
      },
      nullptr);
}

/* Drops what is due: owners whose work is done, capsules given back. Never blocks. */
inline void drop_due(size_t* left = nullptr) noexcept {
  if (state().finalizing.load(std::memory_order_relaxed)) return;
  if (state().graveyard.load(std::memory_order_relaxed) != nullptr) drop_graveyard();
  hostwait_cai_drain_in(
      HOSTWAIT_CAI_QUEUE_PYTHON,
      [](void* owner, void*) {
        auto* item = static_cast<droppable*>(owner);
        item->drop(item);
      },
      nullptr, left, nullptr);
}

inline PyObject* on_exit(PyObject*, PyObject*) noexcept {
  state().finalizing.store(true, std::memory_order_relaxed);
  Py_INCREF(Py_None);
  return Py_None;
}

/* Names and the exit hook, once per module. False with an exception set. */
inline bool enter() noexcept {
  module_state& s = state();
  if (s.ready) return true;
  static PyMethodDef exit_hook = {"hostwait_cai_exit", on_exit, METH_NOARGS, nullptr};
  const auto name = [](const char* text) { return PyUnicode_InternFromString(text); };
  ref atexit = ref::steal(PyImport_ImportModule("atexit"));
  ref function = ref::steal(PyCFunction_NewEx(&exit_hook, nullptr, nullptr));
  if (!atexit || !function) return false;
  ref done = ref::steal(PyObject_CallMethod(atexit.get(), "register", "O", function.get()));
  if (!done) return false;
  s.cai = name("__cuda_array_interface__");
  s.dlpack = name("__dlpack__");
  s.exchange_api = name("__dlpack_c_exchange_api__");
  s.cuda_stream = name("__cuda_stream__");
  s.shape = name("shape");
  s.typestr = name("typestr");
  s.data = name("data");
  s.version = name("version");
  s.strides = name("strides");
  s.descr = name("descr");
  s.mask = name("mask");
  s.stream = name("stream");
  s.max_version = name("max_version");
  s.no_arguments = PyTuple_New(0);
  s.dlpack_version = Py_BuildValue("(ii)", 1, 3);
  s.ready = !PyErr_Occurred();
  return s.ready;
}

/* Attribute or null; a missing attribute is no error. False with an exception set. */
inline bool optional_attribute(PyObject* object, PyObject* name, ref& out) noexcept {
  out = ref::steal(PyObject_GetAttr(object, name));
  if (out) return true;
  if (!PyErr_ExceptionMatches(PyExc_AttributeError)) return false;
  PyErr_Clear();
  return true;
}

inline PyObject* exception_type(int code) noexcept {
  switch (code) {
    case HOSTWAIT_CAI_ERR_TYPE:
    case HOSTWAIT_CAI_ERR_NOT_CAI:
    case HOSTWAIT_CAI_ERR_NOT_DICT:
    case HOSTWAIT_CAI_ERR_MASK_TYPE:
      return PyExc_TypeError;
    case HOSTWAIT_CAI_ERR_READONLY:
    case HOSTWAIT_CAI_ERR_UNSUPPORTED_DTYPE:
    case HOSTWAIT_CAI_ERR_NOT_DEVICE:
    case HOSTWAIT_CAI_ERR_NO_PEER:
    case HOSTWAIT_CAI_ERR_CONSUMED:
      return PyExc_BufferError;
    case HOSTWAIT_CAI_ERR_NO_MEMORY:
      return PyExc_MemoryError;
    case HOSTWAIT_CAI_ERR_FORKED:
    case HOSTWAIT_CAI_ERR_CAPTURE_BOUNDARY:
    case HOSTWAIT_CAI_ERR_CAPTURE_LEGACY:
    case HOSTWAIT_CAI_ERR_CAPTURE_HOST_SYNC:
    case HOSTWAIT_CAI_ERR_CAPTURE_INVALIDATED:
    case HOSTWAIT_CAI_ERR_NO_DRIVER:
    case HOSTWAIT_CAI_ERR_DRIVER:
      return PyExc_RuntimeError;
    default:
      return PyExc_ValueError;
  }
}

}  // namespace detail

/* Sets the Python exception for a failed call of the core, with the attributes `code` (a string),
 * `key`, `index` and `driver`. A hook's own exception is left as it is. Returns false. */
inline bool set_error(const hostwait_cai_error& error) noexcept {
  if (error.code == HOSTWAIT_CAI_ERR_CALLBACK && PyErr_Occurred()) return false;
  const char* key = error.key != nullptr ? error.key : "";
  ref text = ref::steal(PyUnicode_FromFormat("%s%s%s: %s", hostwait_cai_code_name(error.code),
                                             *key ? ": " : "", key, error.text));
  if (!text) return false;
  PyObject* type = detail::exception_type(error.code);
  ref exception = ref::steal(PyObject_CallFunctionObjArgs(type, text.get(), nullptr));
  if (!exception) return false;
  const auto set = [&](const char* name, ref value) {
    return value && PyObject_SetAttrString(exception.get(), name, value.get()) == 0;
  };
  if (set("code", ref::steal(PyUnicode_FromString(hostwait_cai_code_name(error.code)))) &&
      set("key", ref::steal(PyUnicode_FromString(key))) &&
      set("index", ref::steal(PyLong_FromLong(error.index))) &&
      set("driver", ref::steal(PyLong_FromLong(error.driver))))
    PyErr_SetObject(type, exception.get());
  return false;
}

/* The same for an error that the glue finds itself. */
inline bool set_error(int code, const char* key, const char* text) noexcept {
  hostwait_cai_error error;
  HOSTWAIT_CAI_INIT(error);
  error.code = code;
  error.index = error.array = -1;
  error.key = key;
  PyOS_snprintf(error.text, sizeof error.text, "%s", text);
  return set_error(error);
}

}  // namespace hostwait::cai::py
