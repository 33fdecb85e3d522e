// SPDX-License-Identifier: Apache-2.0
// Copyright The hostwait authors
// The runtime functions that advice.cpp calls, over the driver functions that the real runtime
// calls (measured: facts of CUDA 13.0), so that the examples run on the simulated driver, where the
// real runtime does not start. A test double; on a GPU the examples use libcudart.
#include <cuda.h>
#include <cuda_runtime_api.h>
#include <dlfcn.h>

#include <cstdio>
#include <cstdlib>

namespace {

void* library() {
  static void* const handle = dlopen("libcuda.so.1", RTLD_NOW);
  if (handle == nullptr) std::abort();
  return handle;
}

thread_local cudaError_t last = cudaSuccess;

// The numbers of both APIs agree.
cudaError_t said(CUresult result) {
  const auto error = static_cast<cudaError_t>(result);
  if (error != cudaSuccess) last = error;
  return error;
}

void start() {
  static const bool started = [] {
    CUdevice device;
    CUcontext context;
    return reinterpret_cast<decltype(&cuInit)>(dlsym(library(), "cuInit"))(0) == CUDA_SUCCESS &&
           reinterpret_cast<decltype(&cuDeviceGet)>(dlsym(library(), "cuDeviceGet"))(&device, 0) ==
               CUDA_SUCCESS &&
           reinterpret_cast<decltype(&cuDevicePrimaryCtxRetain)>(
               dlsym(library(), "cuDevicePrimaryCtxRetain"))(&context, device) == CUDA_SUCCESS &&
           reinterpret_cast<decltype(&cuCtxSetCurrent)>(dlsym(library(), "cuCtxSetCurrent"))(
               context) == CUDA_SUCCESS;
  }();
  if (!started) std::abort();
}

#define TEXT_(x) #x
#define TEXT(x) TEXT_(x)
#define CU(name, ...) \
  (start(), said(reinterpret_cast<decltype(&name)>(dlsym(library(), TEXT(name)))(__VA_ARGS__)))

CUdeviceptr address(const void* pointer) {
  return reinterpret_cast<CUdeviceptr>(pointer);
}

}  // namespace

extern "C" {

cudaError_t cudaGetLastError() {
  const cudaError_t error = last;
  last = cudaSuccess;
  return error;
}
const char* cudaGetErrorString(cudaError_t error) {
  static thread_local char text[32];
  std::snprintf(text, sizeof text, "error %d", static_cast<int>(error));
  return text;
}

cudaError_t cudaDeviceSynchronize() {
  return CU(cuCtxSynchronize, );
}
cudaError_t cudaDeviceSetLimit(cudaLimit limit, size_t value) {
  return CU(cuCtxSetLimit, static_cast<CUlimit>(limit), value);
}

cudaError_t cudaStreamCreate(cudaStream_t* stream) {
  return CU(cuStreamCreate, stream, CU_STREAM_DEFAULT);
}
cudaError_t cudaStreamSynchronize(cudaStream_t stream) {
  return CU(cuStreamSynchronize, stream);
}
cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event, unsigned flags) {
  return CU(cuStreamWaitEvent, stream, event, flags);
}

cudaError_t cudaEventCreateWithFlags(cudaEvent_t* event, unsigned flags) {
  return CU(cuEventCreate, event, flags);
}
cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream) {
  return CU(cuEventRecord, event, stream);
}
cudaError_t cudaEventQuery(cudaEvent_t event) {
  return CU(cuEventQuery, event);
}
cudaError_t cudaEventSynchronize(cudaEvent_t event) {
  return CU(cuEventSynchronize, event);
}

cudaError_t cudaMalloc(void** pointer, size_t bytes) {
  return CU(cuMemAlloc, reinterpret_cast<CUdeviceptr*>(pointer), bytes);
}
cudaError_t cudaFree(void* pointer) {
  return CU(cuMemFree, address(pointer));
}
cudaError_t cudaMallocHost(void** pointer, size_t bytes) {
  return CU(cuMemHostAlloc, pointer, bytes, 0);
}
cudaError_t cudaFreeHost(void* pointer) {
  return CU(cuMemFreeHost, pointer);
}
cudaError_t cudaMallocAsync(void** pointer, size_t bytes, cudaStream_t stream) {
  return CU(cuMemAllocAsync, reinterpret_cast<CUdeviceptr*>(pointer), bytes, stream);
}
cudaError_t cudaFreeAsync(void* pointer, cudaStream_t stream) {
  return CU(cuMemFreeAsync, address(pointer), stream);
}

cudaError_t cudaMemset(void* pointer, int value, size_t bytes) {
  return CU(cuMemsetD8, address(pointer), static_cast<unsigned char>(value), bytes);
}
cudaError_t cudaMemsetAsync(void* pointer, int value, size_t bytes, cudaStream_t stream) {
  return CU(cuMemsetD8Async, address(pointer), static_cast<unsigned char>(value), bytes, stream);
}
cudaError_t cudaMemcpy(void* to, const void* from, size_t bytes, cudaMemcpyKind kind) {
  return kind == cudaMemcpyDeviceToHost ? CU(cuMemcpyDtoH, to, address(from), bytes)
                                        : CU(cuMemcpyHtoD, address(to), from, bytes);
}
cudaError_t cudaMemcpyAsync(void* to, const void* from, size_t bytes, cudaMemcpyKind kind,
                            cudaStream_t stream) {
  return kind == cudaMemcpyDeviceToHost ? CU(cuMemcpyDtoHAsync, to, address(from), bytes, stream)
                                        : CU(cuMemcpyHtoDAsync, address(to), from, bytes, stream);
}

cudaError_t cudaLibraryLoadData(cudaLibrary_t* loaded, const void* code, cudaJitOption*, void**,
                                unsigned, cudaLibraryOption*, void**, unsigned) {
  return CU(cuLibraryLoadData, reinterpret_cast<CUlibrary*>(loaded), code, nullptr, nullptr, 0,
            nullptr, nullptr, 0);
}
cudaError_t cudaLibraryUnload(cudaLibrary_t loaded) {
  return CU(cuLibraryUnload, reinterpret_cast<CUlibrary>(loaded));
}
cudaError_t cudaLibraryGetKernelCount(unsigned* count, cudaLibrary_t loaded) {
  return CU(cuLibraryGetKernelCount, count, reinterpret_cast<CUlibrary>(loaded));
}

}  // extern "C"
