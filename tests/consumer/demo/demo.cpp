// SPDX-License-Identifier: Apache-2.0
// Copyright The hostwait authors
// A small program with the waits that people meet: what scripts/demo.sh runs. It knows nothing of
// hostwait. The "training" is memsets and copies; there is no kernel, so that it runs on any
// driver, the simulated one too.
#include <cuda.h>
#include <dlfcn.h>

#include <cstdio>
#include <cstdlib>
#include <vector>

namespace {

void* library() {
  static void* const handle = dlopen("libcuda.so.1", RTLD_NOW);
  if (handle == nullptr) {
    std::fprintf(stderr, "demo: %s\n", dlerror());
    std::exit(1);
  }
  return handle;
}

void check(CUresult result, const char* call) {
  if (result == CUDA_SUCCESS) return;
  std::fprintf(stderr, "demo: %s: error %d\n", call, static_cast<int>(result));
  std::exit(1);
}

#define TEXT_(x) #x
#define TEXT(x) TEXT_(x)
// The versioned symbol that cuda.h maps the name to (cuMemAlloc is cuMemAlloc_v2).
#define CU(name, ...) \
  check(reinterpret_cast<decltype(&name)>(dlsym(library(), TEXT(name)))(__VA_ARGS__), TEXT(name))

constexpr std::size_t batch_bytes = 8 << 20;

struct trainer {
  CUstream stream = nullptr;
  CUdeviceptr weights = 0, batch = 0, loss = 0;
  std::size_t weight_bytes;
  std::vector<float> data = std::vector<float>(batch_bytes / sizeof(float), 1.0f);

  explicit trainer(std::size_t bytes) : weight_bytes(bytes) {
    CU(cuStreamCreate, &stream, CU_STREAM_NON_BLOCKING);
    CU(cuMemAlloc, &weights, weight_bytes);
    CU(cuMemAlloc, &batch, batch_bytes);
    CU(cuMemAlloc, &loss, sizeof(float));
    CU(cuMemsetD8Async, loss, 0, sizeof(float), stream);
  }

  // "Async", but the source is pageable and larger than 2 MiB: the host waits.
  void load_batch() { CU(cuMemcpyHtoDAsync, batch, data.data(), batch_bytes, stream); }

  // The GPU's work of one step. Nothing waits here.
  void forward_and_backward() {
    for (int layer = 0; layer < 4; layer++) {
      CU(cuMemsetD8Async, weights, static_cast<unsigned char>(layer), weight_bytes, stream);
    }
  }

  // One number for the log, at the price of an idle GPU.
  float read_loss() {
    float value = 0;
    CU(cuMemcpyDtoHAsync, &value, loss, sizeof value, stream);
    CU(cuStreamSynchronize, stream);
    return value;
  }

  // Freeing waits for every stream of the context.
  void resize_workspace() {
    CUdeviceptr workspace = 0;
    CU(cuMemAlloc, &workspace, batch_bytes);
    CU(cuMemFree, workspace);
  }

  void save_checkpoint() {
    std::vector<unsigned char> copy(weight_bytes);
    CU(cuCtxSynchronize, );
    CU(cuMemcpyDtoH, copy.data(), weights, weight_bytes);
  }
};

}  // namespace

int main(int argc, char** argv) {
  const int steps = argc > 1 ? std::atoi(argv[1]) : 50;
  const int weights_mib = argc > 2 ? std::atoi(argv[2]) : 4;
  CUdevice device;
  CUcontext context;
  CU(cuInit, 0);
  CU(cuDeviceGet, &device, 0);
  CU(cuDevicePrimaryCtxRetain, &context, device);
  CU(cuCtxSetCurrent, context);

  trainer training(static_cast<std::size_t>(weights_mib) << 20);
  float loss = 0;
  for (int step = 1; step <= steps; step++) {
    training.load_batch();
    training.forward_and_backward();
    loss += training.read_loss();
    if (step % 10 == 0) {
      training.forward_and_backward();
      training.resize_workspace();
    }
  }
  training.forward_and_backward();
  training.save_checkpoint();
  std::printf("demo: %d steps, loss %.1f\n", steps, loss);
  return 0;
}
