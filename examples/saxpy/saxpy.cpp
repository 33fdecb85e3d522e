// SPDX-License-Identifier: Apache-2.0
// Copyright The hostwait authors
// A complete consumer and producer: saxpy(a, x, y, out=None, stream=1) computes a*x + y on any
// stream, from any library's arrays into any library's array or one of its own, without stopping
// the host. Float32, contiguous, device 0. Driver API by dlopen, kernel from PTX: no nvcc.
#define Py_LIMITED_API 0x030B0000
#include <cuda.h>
#include <dlfcn.h>
#include <hostwait/cai_python.hpp>

namespace cai = hostwait::cai::py;

static const char ptx[] = R"(.version 6.4
.target sm_75
.address_size 64
.visible .entry saxpy(.param .u64 po, .param .f32 pa, .param .u64 px, .param .u64 py, .param .u32 pn) {
  .reg .pred %p; .reg .u32 %r<5>; .reg .u64 %d<8>; .reg .f32 %f<4>;
  mov.u32 %r1, %ctaid.x; mov.u32 %r2, %ntid.x; mov.u32 %r3, %tid.x;
  mad.lo.u32 %r1, %r1, %r2, %r3; ld.param.u32 %r4, [pn]; setp.ge.u32 %p, %r1, %r4; @%p ret;
  ld.param.u64 %d1, [po]; ld.param.u64 %d2, [px]; ld.param.u64 %d3, [py];
  ld.param.f32 %f1, [pa]; mul.wide.u32 %d4, %r1, 4;
  add.u64 %d5, %d2, %d4; add.u64 %d6, %d3, %d4; add.u64 %d7, %d1, %d4;
  ld.global.f32 %f2, [%d5]; ld.global.f32 %f3, [%d6];
  fma.rn.f32 %f2, %f1, %f2, %f3; st.global.f32 [%d7], %f2; ret;
})";

// clang-format off
#define EACH(X) \
  X(cuInit) X(cuDevicePrimaryCtxRetain) X(cuCtxGetCurrent) X(cuCtxSetCurrent) \
  X(cuModuleLoadData) X(cuModuleGetFunction) X(cuLaunchKernel) X(cuMemAllocAsync) X(cuMemFreeAsync)
#define TEXT(name) #name
#define EXPORTED(name) TEXT(name)  // the name behind cuda.h's macro
#define DECLARE(f) static decltype(&f) f##_;
#define LOAD(f) f##_ = reinterpret_cast<decltype(f##_)>(dlsym(library, EXPORTED(f)));
EACH(DECLARE)
// clang-format on
static CUfunction kernel;

/* The kernel, and a context for threads that have none. */
static bool ready() {
  CUcontext context = nullptr;
  CUmodule module;
  if (kernel == nullptr) {
    void* library = dlopen("libcuda.so.1", RTLD_NOW);
    EACH(LOAD)
  }
  return cuInit_ != nullptr && cuInit_(0) == CUDA_SUCCESS &&
         cuCtxGetCurrent_(&context) == CUDA_SUCCESS &&
         (context != nullptr || (cuDevicePrimaryCtxRetain_(&context, 0) == CUDA_SUCCESS &&
                                 cuCtxSetCurrent_(context) == CUDA_SUCCESS)) &&
         (kernel != nullptr || (cuModuleLoadData_(&module, ptx) == CUDA_SUCCESS &&
                                cuModuleGetFunction_(&kernel, module, "saxpy") == CUDA_SUCCESS));
}

/* Our own array: memory and all its work are in one stream, which the caller keeps (R21). */
struct array {
  PyObject_HEAD hostwait_cai_stream stream;
  cai::produced shown;
};
static PyObject* array_type;
// clang-format off
static cai::produced& shown(PyObject* self) { return reinterpret_cast<array*>(self)->shown; }
static void array_free(PyObject* self) {
  auto* type = reinterpret_cast<PyObject*>(Py_TYPE(self));
  cuMemFreeAsync_(shown(self).desc.ptr, CUstream(shown(self).chosen.value));
  PyObject_Free(self);
  Py_DECREF(type);
}
static PyObject* array_dict(PyObject* self, void*) { return cai::to_dict(shown(self)); }
static PyObject* array_dlpack(PyObject* self, PyObject* args, PyObject* keywords) {
  return cai::to_dlpack(shown(self), self, args, keywords);
}
static PyObject* array_device(PyObject* self, PyObject*) { return cai::dlpack_device(shown(self)); }
// clang-format on

static PyObject* new_array(const hostwait_cai_desc& like, hostwait_cai_stream stream) {
  CUdeviceptr ptr = 0;
  if (cuMemAllocAsync_(&ptr, like.nbytes, CUstream(stream.value)) != CUDA_SUCCESS)
    return PyErr_NoMemory();
  auto* self = PyObject_New(array, reinterpret_cast<PyTypeObject*>(array_type));
  if (self == nullptr) return nullptr;
  self->stream = stream;
  new (&self->shown) cai::produced;
  hostwait_cai_describe("<f4", ptr, like.ndim, like.shape, nullptr, 0, &self->shown.desc, nullptr);
  self->shown.pending = {&self->stream, 1};
  self->shown.chosen = stream;
  self->shown.flags = HOSTWAIT_CAI_EXPORT_KEPT;
  return reinterpret_cast<PyObject*>(self);
}

static PyObject* saxpy(PyObject*, PyObject* args, PyObject* keywords) {
  static const char* names[] = {"a", "x", "y", "out", "stream", nullptr};
  float a;
  PyObject *x, *y, *out = Py_None;
  unsigned long long value = HOSTWAIT_CAI_LEGACY;
  if (!PyArg_ParseTupleAndKeywords(args, keywords, "fOO|OK", const_cast<char**>(names), &a, &x, &y,
                                   &out, &value))
    return nullptr;
  if (!ready()) return PyErr_Format(PyExc_RuntimeError, "no CUDA driver, or it failed to start");
  const hostwait_cai_stream stream = hostwait_cai_stream_value(value);

  cai::options read, write;
  read.policy.intent = HOSTWAIT_CAI_READ;
  auto vx = cai::view::from(x, read), vy = vx ? cai::view::from(y, read) : std::nullopt;
  if (!vy) return nullptr;
  cai::ref result =
      out == Py_None ? cai::ref::steal(new_array(vx->desc(), stream)) : cai::ref::borrow(out);
  auto vo = result ? cai::view::from(result.get(), write) : std::nullopt;
  if (!vo) return nullptr;
  cai::view* arrays[] = {&*vx, &*vy, &*vo};
  for (const cai::view* v : arrays)
    if (v->desc().kind != 'f' || v->desc().itemsize != 4 || v->desc().count != vx->desc().count ||
        v->desc().count >> 32 || !(v->desc().flags & HOSTWAIT_CAI_F_C_CONTIGUOUS))
      return PyErr_Format(PyExc_ValueError, "float32, contiguous, of one size, please");

  auto use = cai::use::acquire(stream, arrays, read);  // our stream waits for the three producers
  if (!use) return nullptr;
  CUdeviceptr px = vx->desc().ptr, py = vy->desc().ptr, po = vo->desc().ptr;
  unsigned n = static_cast<unsigned>(vx->desc().count);
  void* parameters[] = {&po, &a, &px, &py, &n};
  if (n != 0 && cuLaunchKernel_(kernel, (n + 255) / 256, 1, 1, 256, 1, 1, 0, CUstream(value),
                                parameters, nullptr) != CUDA_SUCCESS)
    return PyErr_Format(PyExc_RuntimeError, "the launch failed");  // `use` still releases
  if (!use->release()) return nullptr;  // the producers' streams wait for ours
  return result.release();
}

// clang-format off
template <class function>
static PyCFunction with_keywords(function* f) {
  return reinterpret_cast<PyCFunction>(reinterpret_cast<void*>(f));
}
static PyMethodDef array_methods[] = {
    {"__dlpack__", with_keywords(array_dlpack), METH_VARARGS | METH_KEYWORDS, nullptr},
    {"__dlpack_device__", array_device, METH_NOARGS, nullptr}, {}};
static PyGetSetDef array_getters[] = {{"__cuda_array_interface__", array_dict, {}, {}, {}}, {}};
static PyType_Slot array_slots[] = {{Py_tp_dealloc, reinterpret_cast<void*>(array_free)},
    {Py_tp_methods, array_methods}, {Py_tp_getset, array_getters}, {}};
static PyType_Spec array_spec = {"saxpy.array", sizeof(array), 0,
    Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION, array_slots};
static PyMethodDef functions[] = {{"saxpy", with_keywords(saxpy), METH_VARARGS | METH_KEYWORDS,
    "saxpy(a, x, y, out=None, stream=1): a*x + y"}, {}};
static PyModuleDef definition = {PyModuleDef_HEAD_INIT, "saxpy", {}, -1, functions, {}, {}, {}, {}};
// clang-format on

PyMODINIT_FUNC PyInit_saxpy() {
  array_type = PyType_FromSpec(&array_spec);
  return array_type != nullptr ? PyModule_Create(&definition) : nullptr;
}
