// SPDX-License-Identifier: Apache-2.0
// Copyright The hostwait authors
// Opens the CUDA runtimes that it is given, in turn, and makes the same calls through each, under
// the library's file name as label. One line per runtime: its version, and the calls' results.
#include <dlfcn.h>
#include <hostwait/hostwait.h>

#include <cstdio>
#include <cstring>
#include <string>
#include <vector>

namespace {

constexpr int host_to_device = 1, device_to_host = 2;

struct runtime {
  void* handle;

  // Results are 999 where the function is missing.
  template <class... A>
  int call(const char* name, A... args) const {
    void* found = dlsym(handle, name);
    return found == nullptr ? 999 : reinterpret_cast<int (*)(A...)>(found)(args...);
  }
};

std::vector<int> use(const runtime& with) {
  constexpr std::size_t bytes = 1 << 20;
  std::vector<char> host(bytes, 1);
  void *device = nullptr, *pinned = nullptr, *stream = nullptr, *event = nullptr;
  std::vector<int> results = {
      with.call("cudaMalloc", &device, bytes),
      with.call("cudaMallocHost", &pinned, bytes),
      with.call("cudaStreamCreate", &stream),
      with.call("cudaEventCreate", &event),
      with.call("cudaMemcpy", device, static_cast<const void*>(host.data()), bytes, host_to_device),
      with.call("cudaMemsetAsync", device, 7, bytes, stream),
      with.call("cudaMemcpyAsync", static_cast<void*>(host.data()),
                static_cast<const void*>(device), bytes, device_to_host, stream),
      with.call("cudaMemcpyAsync", pinned, static_cast<const void*>(device), bytes, device_to_host,
                stream),
      with.call("cudaStreamSynchronize", stream),
      with.call("cudaEventRecord", event, stream),
      with.call("cudaEventSynchronize", event),
      with.call("cudaDeviceSynchronize"),
      with.call("cudaMemcpy", static_cast<void*>(host.data()), static_cast<const void*>(device),
                bytes, device_to_host),
      with.call("cudaMemset", pinned, 0, bytes),
      with.call("cudaEventDestroy", event),
      with.call("cudaStreamDestroy", stream),
      with.call("cudaFreeHost", pinned),
      with.call("cudaFree", device)};
  results.push_back(host[bytes - 1]);  // 7 where the device did it
  return results;
}

}  // namespace

int main(int argc, char** argv) {
  for (int i = 1; i < argc; ++i) {
    const runtime with{dlopen(argv[i], RTLD_NOW | RTLD_LOCAL)};
    const char* slash = std::strrchr(argv[i], '/');
    const std::string name = slash != nullptr ? slash + 1 : argv[i];
    if (with.handle == nullptr) {
      std::fprintf(stderr, "%s\n", dlerror());
      return 2;
    }
    int version = 0;
    with.call("cudaRuntimeGetVersion", &version);
    const int token = hostwait_push_label(HOSTWAIT_LOG, HOSTWAIT_ALL, name.c_str());
    const std::vector<int> results = use(with);
    if (token > 0) hostwait_pop(token);
    std::printf("%s %d:", name.c_str(), version);
    for (const int result : results) std::printf(" %d", result);
    std::printf("\n");
  }
  return 0;
}
