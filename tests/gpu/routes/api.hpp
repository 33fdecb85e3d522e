// SPDX-License-Identifier: Apache-2.0
// Copyright The hostwait authors
// The few CUDA calls of the route program, over the runtime, the linked driver API, or the driver
// found by dlopen. HOSTWAIT_ROUTE_DRIVER and HOSTWAIT_ROUTE_DLOPEN choose. Each function makes
// exactly one driver call of the same base name on every route.
#pragma once

#include <cuda.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#if !defined(HOSTWAIT_ROUTE_DRIVER) && !defined(HOSTWAIT_ROUTE_DLOPEN)
#include <cuda_runtime_api.h>
#define HOSTWAIT_ROUTE_RUNTIME
#endif

namespace api {

using stream = CUstream;
using event = CUevent;

inline void check(int error, const char* what) {
  if (error == 0) return;
  fprintf(stderr, "%s: error %d\n", what, error);
  exit(3);
}

#ifdef HOSTWAIT_ROUTE_RUNTIME

inline void start() {
  check(cudaSetDevice(0), "cudaSetDevice");
}
inline int stream_create(stream* s) {
  return cudaStreamCreateWithFlags(reinterpret_cast<cudaStream_t*>(s), cudaStreamNonBlocking);
}
inline int stream_sync(stream s) {
  return cudaStreamSynchronize(s);
}
inline int device_sync() {
  return cudaDeviceSynchronize();
}
inline int event_create(event* e) {
  return cudaEventCreateWithFlags(reinterpret_cast<cudaEvent_t*>(e), cudaEventDisableTiming);
}
inline int event_record(event e, stream s) {
  return cudaEventRecord(e, s);
}
inline int event_sync(event e) {
  return cudaEventSynchronize(e);
}
inline int device_alloc(void** p, size_t n) {
  return cudaMalloc(p, n);
}
inline int device_free(void* p) {
  return cudaFree(p);
}
inline int pinned_alloc(void** p, size_t n) {
  return cudaHostAlloc(p, n, cudaHostAllocDefault);
}
inline int pinned_free(void* p) {
  return cudaFreeHost(p);
}
inline int pin(void* p, size_t n) {
  return cudaHostRegister(p, n, cudaHostRegisterDefault);
}
inline int unpin(void* p) {
  return cudaHostUnregister(p);
}
inline int to_host(void* to, const void* from, size_t n) {
  return cudaMemcpy(to, from, n, cudaMemcpyDeviceToHost);
}
inline int to_device(void* to, const void* from, size_t n) {
  return cudaMemcpy(to, from, n, cudaMemcpyHostToDevice);
}
inline int to_host_async(void* to, const void* from, size_t n, stream s) {
  return cudaMemcpyAsync(to, from, n, cudaMemcpyDeviceToHost, s);
}
inline int to_device_async(void* to, const void* from, size_t n, stream s) {
  return cudaMemcpyAsync(to, from, n, cudaMemcpyHostToDevice, s);
}
inline int on_device(void* to, const void* from, size_t n) {
  return cudaMemcpy(to, from, n, cudaMemcpyDeviceToDevice);
}
inline int fill(void* p, int value, size_t n) {
  return cudaMemset(p, value, n);
}
inline int fill_async(void* p, int value, size_t n, stream s) {
  return cudaMemsetAsync(p, value, n, s);
}
// The runtime's last-error semantics around a refused call: peek, get, get.
inline bool last_error_is(int error) {
  return cudaPeekAtLastError() == error && cudaGetLastError() == error && cudaGetLastError() == 0;
}

#else

#ifdef HOSTWAIT_ROUTE_DLOPEN
}  // namespace api
#include <dlfcn.h>
namespace api {
inline void* library() {
  static void* handle = dlopen("libcuda.so.1", RTLD_NOW);
  if (handle == nullptr) {
    fprintf(stderr, "%s\n", dlerror());
    exit(77);
  }
  return handle;
}
inline void* found(const char* name) {
  void* function = dlsym(library(), name);
  if (function == nullptr) {
    fprintf(stderr, "%s\n", dlerror());
    exit(3);
  }
  return function;
}
#define HOSTWAIT_TEXT_(x) #x
#define HOSTWAIT_TEXT(x) HOSTWAIT_TEXT_(x)
#define HOSTWAIT_CALL(name) reinterpret_cast<decltype(&name)>(api::found(HOSTWAIT_TEXT(name)))
#else
#define HOSTWAIT_CALL(name) name
#endif

inline CUdeviceptr at(const void* p) {
  return reinterpret_cast<CUdeviceptr>(p);
}

inline void start() {
  CUdevice device;
  CUcontext context;
  check(HOSTWAIT_CALL(cuInit)(0), "cuInit");
  check(HOSTWAIT_CALL(cuDeviceGet)(&device, 0), "cuDeviceGet");
  check(HOSTWAIT_CALL(cuDevicePrimaryCtxRetain)(&context, device), "cuDevicePrimaryCtxRetain");
  check(HOSTWAIT_CALL(cuCtxSetCurrent)(context), "cuCtxSetCurrent");
}
inline int stream_create(stream* s) {
  return HOSTWAIT_CALL(cuStreamCreate)(s, CU_STREAM_NON_BLOCKING);
}
inline int stream_sync(stream s) {
  return HOSTWAIT_CALL(cuStreamSynchronize)(s);
}
inline int device_sync() {
  return HOSTWAIT_CALL(cuCtxSynchronize)();
}
inline int event_create(event* e) {
  return HOSTWAIT_CALL(cuEventCreate)(e, 2 /* no timing */);
}
inline int event_record(event e, stream s) {
  return HOSTWAIT_CALL(cuEventRecord)(e, s);
}
inline int event_sync(event e) {
  return HOSTWAIT_CALL(cuEventSynchronize)(e);
}
inline int device_alloc(void** p, size_t n) {
  return HOSTWAIT_CALL(cuMemAlloc)(reinterpret_cast<CUdeviceptr*>(p), n);
}
inline int device_free(void* p) {
  return HOSTWAIT_CALL(cuMemFree)(at(p));
}
inline int pinned_alloc(void** p, size_t n) {
  return HOSTWAIT_CALL(cuMemHostAlloc)(p, n, 0);
}
inline int pinned_free(void* p) {
  return HOSTWAIT_CALL(cuMemFreeHost)(p);
}
inline int pin(void* p, size_t n) {
  return HOSTWAIT_CALL(cuMemHostRegister)(p, n, 0);
}
inline int unpin(void* p) {
  return HOSTWAIT_CALL(cuMemHostUnregister)(p);
}
inline int to_host(void* to, const void* from, size_t n) {
  return HOSTWAIT_CALL(cuMemcpyDtoH)(to, at(from), n);
}
inline int to_device(void* to, const void* from, size_t n) {
  return HOSTWAIT_CALL(cuMemcpyHtoD)(at(to), from, n);
}
inline int to_host_async(void* to, const void* from, size_t n, stream s) {
  return HOSTWAIT_CALL(cuMemcpyDtoHAsync)(to, at(from), n, s);
}
inline int to_device_async(void* to, const void* from, size_t n, stream s) {
  return HOSTWAIT_CALL(cuMemcpyHtoDAsync)(at(to), from, n, s);
}
inline int on_device(void* to, const void* from, size_t n) {
  return HOSTWAIT_CALL(cuMemcpyDtoD)(at(to), at(from), n);
}
inline int fill(void* p, int value, size_t n) {
  return HOSTWAIT_CALL(cuMemsetD8)(at(p), static_cast<unsigned char>(value), n);
}
inline int fill_async(void* p, int value, size_t n, stream s) {
  return HOSTWAIT_CALL(cuMemsetD8Async)(at(p), static_cast<unsigned char>(value), n, s);
}
inline bool last_error_is(int) {
  return true;
}  // the driver keeps none

#endif

}  // namespace api
