// SPDX-License-Identifier: Apache-2.0
// Copyright The hostwait authors
// C++ at -O3: inlined functions, templates, lambdas, threads. Comments say which line each wait
// should be blamed on (tests/gpu/expected_lines.py). Over the runtime, or (HOSTWAIT_LINES_DRIVER)
// over the driver found by dlopen, which is how it runs on the simulated driver.
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

#include <algorithm>
#include <thread>
#include <vector>

#ifdef HOSTWAIT_LINES_DRIVER
#include <cuda.h>
#include <dlfcn.h>
static void* driver;
template <class F>
static F* in_driver(F*& known, const char* name) {
  if (known == nullptr) known = reinterpret_cast<F*>(dlsym(driver, name));
  return known;
}
using stream = CUstream;
#define TEXT_(x) #x
#define TEXT(x) TEXT_(x)
#define DRIVER(name)                        \
  (*[]() -> decltype(&name) {               \
    static decltype(&name) known = nullptr; \
    return in_driver(known, TEXT(name));    \
  }())
#define STREAM_CREATE(s) DRIVER(cuStreamCreate)(s, CU_STREAM_NON_BLOCKING)
#define STREAM_SYNC(s) DRIVER(cuStreamSynchronize)(s)
#define DEVICE_SYNC() DRIVER(cuCtxSynchronize)()
#define ALLOC(p, n) DRIVER(cuMemAlloc)(reinterpret_cast<CUdeviceptr*>(p), n)
#define FREE(p) DRIVER(cuMemFree)(reinterpret_cast<CUdeviceptr>(p))
#define TO_HOST(to, from, n) DRIVER(cuMemcpyDtoH)(to, reinterpret_cast<CUdeviceptr>(from), n)
#define TO_HOST_ASYNC(to, from, n, s) \
  DRIVER(cuMemcpyDtoHAsync)(to, reinterpret_cast<CUdeviceptr>(from), n, s)
static void start() {
  driver = dlopen("libcuda.so.1", RTLD_NOW);
  if (driver == nullptr) exit(77);
  CUdevice device;
  CUcontext context;
  if (DRIVER(cuInit)(0) != 0 || DRIVER(cuDeviceGet)(&device, 0) != 0 ||
      DRIVER(cuDevicePrimaryCtxRetain)(&context, device) != 0 ||
      DRIVER(cuCtxSetCurrent)(context) != 0)
    exit(77);
}
#else
#include <cuda_runtime_api.h>
using stream = cudaStream_t;
#define STREAM_CREATE(s) cudaStreamCreateWithFlags(s, cudaStreamNonBlocking)
#define STREAM_SYNC(s) cudaStreamSynchronize(s)
#define DEVICE_SYNC() cudaDeviceSynchronize()
#define ALLOC(p, n) cudaMalloc(p, n)
#define FREE(p) cudaFree(p)
#define TO_HOST(to, from, n) cudaMemcpy(to, from, n, cudaMemcpyDeviceToHost)
#define TO_HOST_ASYNC(to, from, n, s) cudaMemcpyAsync(to, from, n, cudaMemcpyDeviceToHost, s)
static void start() {
  if (cudaSetDevice(0) != cudaSuccess) exit(77);
}
#endif

static void must(int error) {
  if (error == 0) return;
  fprintf(stderr, "error %d\n", error);
  exit(3);
}

namespace {

// Inlined into each caller: the stack holds one address for two or three functions.
template <class T>
inline T value_of(const T* on_device) {
  T value;
  must(TO_HOST(&value, on_device, sizeof value));  // expect: copy; in value_of; id value
  return value;
}

[[gnu::always_inline]] inline float root_of(const float* x) {
  return value_of(x) * 0.5f;  // via: value
}

struct workspace {
  float* memory = nullptr;
  workspace() { must(ALLOC(reinterpret_cast<void**>(&memory), 1 << 20)); }
  ~workspace() {
    must(FREE(memory));  // expect: free; in ~workspace
  }
};

struct reader {
  std::vector<float> host = std::vector<float>(4096);
  stream on = nullptr;
  void fetch(const float* from) {
    const size_t bytes = host.size() * sizeof(float);
    must(TO_HOST_ASYNC(host.data(), from, bytes, on));  // expect: async_copy; in fetch
    must(STREAM_SYNC(nullptr));                         // expect: stream_sync; in fetch
  }
};

}  // namespace

[[gnu::noinline]] float loss_of(const float* x) {
  return root_of(x) + 1;  // via: value
}

[[gnu::noinline]] float deep(const float* x, int depth) {
  if (depth == 0)
    return static_cast<float>(value_of(reinterpret_cast<const int*>(x)));  // via: value
  return deep(x, depth - 1) + 1;
}

[[gnu::noinline]] void each_stream(std::vector<stream>& streams) {
  std::for_each(streams.begin(), streams.end(), [](stream s) {
    must(STREAM_SYNC(s));  // expect: stream_sync; id each
  });
}

[[gnu::noinline]] void checkpoint() {
  try {
    throw 1;
  } catch (int) {
    must(DEVICE_SYNC());  // expect: device_sync; in checkpoint
  }
}

int main() {
  start();
  stream s;
  must(STREAM_CREATE(&s));
  std::vector<stream> streams{s, s};
  {
    workspace w;
    reader r;
    r.on = s;
    printf("%d\n", loss_of(w.memory) == 0);
    printf("%d\n", deep(w.memory, 5) == 0);
    r.fetch(w.memory);
    each_stream(streams);
    std::thread([&] {
      pthread_setname_np(pthread_self(), "reader");
#ifdef HOSTWAIT_LINES_DRIVER
      start();
#endif
      must(STREAM_SYNC(s));  // expect: stream_sync; thread reader
    }).join();
    checkpoint();
  }
  return 0;
}
