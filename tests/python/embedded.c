/* SPDX-License-Identifier: Apache-2.0
 * Copyright The hostwait authors
 *
 * A C program around an interpreter: waits before it starts, in it, in sub-interpreters, on threads
 * that it does not know, after it ended and after it started again. Each wait bears a label;
 * embedded_test.py knows what stack each should have. */
#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <cuda.h>
#include <dlfcn.h>
#include <pthread.h>

#include "hostwait/hostwait.h"

static CUcontext context;
static CUresult (*set_current)(CUcontext);
static CUresult (*synchronize)(void);

static void wait_as(const char* label) {
  const int token = hostwait_push_label(HOSTWAIT_LOG, HOSTWAIT_SYNC, label);
  if (set_current(context) != CUDA_SUCCESS || synchronize() != CUDA_SUCCESS) abort();
  hostwait_pop(token);
}

static void start_driver(void) {
  void* driver = dlopen("libcuda.so.1", RTLD_NOW);
  if (driver == NULL) exit(77);
  CUresult (*init)(unsigned) = (CUresult(*)(unsigned))dlsym(driver, "cuInit");
  CUresult (*retain)(CUcontext*, CUdevice) =
      (CUresult(*)(CUcontext*, CUdevice))dlsym(driver, "cuDevicePrimaryCtxRetain");
  set_current = (CUresult(*)(CUcontext))dlsym(driver, "cuCtxSetCurrent");
  synchronize = (CUresult(*)(void))dlsym(driver, "cuCtxSynchronize");
  if (init(0) != CUDA_SUCCESS || retain(&context, 0) != CUDA_SUCCESS) exit(77);
}

static PyObject* gpu_wait(PyObject* self, PyObject* args) {
  const char* label;
  (void)self;
  if (!PyArg_ParseTuple(args, "s", &label)) return NULL;
  wait_as(label);
  Py_RETURN_NONE;
}

static PyObject* gpu_wait_without_gil(PyObject* self, PyObject* args) {
  const char* label;
  (void)self;
  if (!PyArg_ParseTuple(args, "s", &label)) return NULL;
  Py_BEGIN_ALLOW_THREADS;
  wait_as(label);
  Py_END_ALLOW_THREADS;
  Py_RETURN_NONE;
}

static PyMethodDef methods[] = {{"wait", gpu_wait, METH_VARARGS, NULL},
                                {"wait_without_gil", gpu_wait_without_gil, METH_VARARGS, NULL},
                                {NULL, NULL, 0, NULL}};
static PyModuleDef_Slot slots[] = {
#if PY_VERSION_HEX >= 0x030c0000
    {Py_mod_multiple_interpreters, Py_MOD_PER_INTERPRETER_GIL_SUPPORTED},
#endif
    {0, NULL}};
static struct PyModuleDef module = {
    PyModuleDef_HEAD_INIT, "gpu", NULL, 0, methods, slots, NULL, NULL, NULL};
static PyObject* make_gpu(void) {
  return PyModuleDef_Init(&module);
}

static void run(const char* text) {
  if (PyRun_SimpleString(text) != 0) abort();
}

static void* unknown_thread(void* label) {
  wait_as(label);
  return NULL;
}

static void* python_thread(void* text) {
  const PyGILState_STATE state = PyGILState_Ensure();
  run(text);
  PyGILState_Release(state);
  wait_as("thread that Python has forgotten");
  return NULL;
}

static void on_thread(void* (*what)(void*), const char* text) {
  pthread_t thread;
  PyThreadState* saved = PyEval_SaveThread();
  if (pthread_create(&thread, NULL, what, (void*)text) != 0) abort();
  pthread_join(thread, NULL);
  PyEval_RestoreThread(saved);
}

static void sub_interpreters(void) {
  PyThreadState* main_state = PyThreadState_Get();
  PyThreadState* sub = Py_NewInterpreter();
  if (sub == NULL) abort();
  run("import gpu\ndef inside():\n  gpu.wait('sub-interpreter')\n"
      "  gpu.wait_without_gil('sub-interpreter without GIL')\ninside()\n");
  Py_EndInterpreter(sub);
  PyThreadState_Swap(main_state);
#if PY_VERSION_HEX >= 0x030c0000
  const PyInterpreterConfig config = {.use_main_obmalloc = 0,
                                      .allow_fork = 0,
                                      .allow_exec = 0,
                                      .allow_threads = 1,
                                      .allow_daemon_threads = 0,
                                      .check_multi_interp_extensions = 1,
                                      .gil = PyInterpreterConfig_OWN_GIL};
  if (PyStatus_Exception(Py_NewInterpreterFromConfig(&sub, &config))) abort();
  run("import gpu\ndef inside():\n  gpu.wait('own GIL')\ninside()\n");
  Py_EndInterpreter(sub);
  PyThreadState_Swap(main_state);
#endif
  run("import gpu\ngpu.wait('main interpreter again')\n");
}

int main(void) {
  start_driver();
  wait_as("before");
  if (PyImport_AppendInittab("gpu", make_gpu) != 0) abort();
  Py_InitializeEx(0);
  wait_as("no frame");
  run("import gpu\ndef f():\n  gpu.wait('holding the GIL')\n  gpu.wait_without_gil('without it')\n"
      "f()\n");
  on_thread(unknown_thread, "unknown thread");
  on_thread(python_thread, "import gpu\n\ngpu.wait('known thread')\n");
  sub_interpreters();
  if (Py_FinalizeEx() != 0) abort();
  wait_as("after");
  Py_InitializeEx(0);
  run("import gpu\n\n\ngpu.wait('second life')\n");
  if (Py_FinalizeEx() != 0) abort();
  wait_as("after all");
  return 0;
}
