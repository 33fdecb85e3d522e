// SPDX-License-Identifier: Apache-2.0
// Copyright The hostwait authors
// Each label of the blocking table as the driver calls that its runtime call makes.
#include "blocking_calls.hpp"

#include <cstdlib>
#include <cstring>

#include "sim_test.hpp"

namespace {

constexpr const char* ptx =
    ".version 7.0\n.target sm_70\n.address_size 64\n"
    ".visible .global .align 4 .b8 sym[4194304];\n"
    ".visible .entry tiny(){ret;}\n";

CUDA_MEMCPY2D host_to_host(void* to, const void* from, size_t bytes) {
  CUDA_MEMCPY2D p{};
  p.srcMemoryType = p.dstMemoryType = CU_MEMORYTYPE_HOST;
  p.srcHost = from;
  p.dstHost = to;
  p.WidthInBytes = bytes;
  p.Height = 1;
  return p;
}

}  // namespace

blocking_calls::blocking_calls()
    : blocking_(sim_test::new_stream(CU_STREAM_DEFAULT)),
      nonblocking_(sim_test::new_stream()),
      second_(sim_test::new_stream()),
      event_(sim_test::new_event()) {
  for (int i = 0; i < 2; ++i) {
    device_[i] = sim_test::new_memory(big_);
    SIM_OK(cuMemHostAlloc(reinterpret_cast<void**>(&pinned_[i]), big_, 0));
    pageable_[i] = static_cast<char*>(calloc(1, big_));
  }
  SIM_OK(cuMemAllocManaged(&managed_, big_, CU_MEM_ATTACH_GLOBAL));
  registered_ = static_cast<char*>(aligned_alloc(4096, big_));
  memset(registered_, 1, big_);
  SIM_OK(cuMemHostRegister(registered_, big_, 0));
  SIM_OK(cuModuleLoadData(&module_, ptx));
  SIM_OK(cuModuleGetFunction(&tiny_, module_, "tiny"));
  SIM_OK(cuModuleGetGlobal(&symbol_, nullptr, module_, "sym"));
  add_waits();
  add_copies();
  add_shaped_copies();
  add_memsets();
  add_memory();
  add_pools();
  add_handles();
  add_launches();
  add_settings();
  add_modules();
}

blocking_calls::~blocking_calls() {
  cuMemHostUnregister(registered_);
  free(registered_);
  for (char* at : pageable_) free(at);
  for (char* at : pinned_) cuMemFreeHost(at);
}

const timed_call* blocking_calls::find(const std::string& label) const {
  auto found = calls_.find(label);
  return found == calls_.end() ? nullptr : &found->second;
}

CUstream blocking_calls::busy(const std::string& name) const {
  if (name == "legacy") return nullptr;
  if (name == "blocking") return blocking_;
  if (name == "nonblocking") return nonblocking_;
  REQUIRE(name == "per_thread");
  return CU_STREAM_PER_THREAD;
}

void blocking_calls::add_waits() {
  add("cudaDeviceSynchronize", {[](CUstream) { SIM_OK(cuCtxSynchronize()); }});
  add("cuCtxSynchronize", {[](CUstream) { SIM_OK(cuCtxSynchronize()); }});
  add("cudaStreamSynchronize(k)", {[](CUstream k) { SIM_OK(cuStreamSynchronize(k)); }});
  add("cudaStreamSynchronize(nb2)",
      {[=, this](CUstream) { SIM_OK(cuStreamSynchronize(second_)); }});
  add("cudaStreamSynchronize(0)", {[](CUstream) { SIM_OK(cuStreamSynchronize(nullptr)); }});
  add("cudaEventRecord+cudaEventSynchronize(k)", {[=, this](CUstream k) {
        SIM_OK(cuEventRecord(event_, k));
        SIM_OK(cuEventSynchronize(event_));
      }});
  add("cudaStreamQuery(k)",
      {[](CUstream k) { REQUIRE(cuStreamQuery(k) == CUDA_ERROR_NOT_READY); }});
  add("cudaStreamWaitEvent(nb2)", {[=, this](CUstream k) {
        SIM_OK(cuEventRecord(event_, k));
        SIM_OK(cuStreamWaitEvent(second_, event_, 0));
      }});
}

void blocking_calls::add_copies() {
  struct memory {
    const char* name;
    char *first, *second;
  };
  auto* managed = reinterpret_cast<char*>(managed_);
  const memory kinds[] = {{"pageable", pageable_[0], pageable_[1]},
                          {"pinned", pinned_[0], pinned_[1]},
                          {"registered", registered_, pinned_[1]},
                          {"managed", managed, managed + big_ / 2}};
  struct size {
    const char* name;
    size_t bytes;
  };
  const size sizes[] = {{"4", 4},          {"1K", 1 << 10},    {"64K", 64 << 10},
                        {"65K", 65 << 10}, {"1024K", 1 << 20}, {"4096K", 4 << 20}};
  for (const size& s : sizes)
    for (const memory& m : kinds) {
      std::string tail = std::string(m.name) + " " + s.name;
      size_t n = s.bytes;
      char *a = m.first, *b = m.second;
      CUdeviceptr d = device_[0];
      CUstream second = second_;
      add("cudaMemcpy H2D " + tail, {[=](CUstream) { SIM_OK(cuMemcpyHtoD(d, a, n)); }});
      add("cudaMemcpy D2H " + tail, {[=](CUstream) { SIM_OK(cuMemcpyDtoH(a, d, n)); }});
      add("cudaMemcpyAsync H2D " + tail + " same",
          {[=](CUstream k) { SIM_OK(cuMemcpyHtoDAsync(d, a, n, k)); }});
      add("cudaMemcpyAsync H2D " + tail + " nb2",
          {[=](CUstream) { SIM_OK(cuMemcpyHtoDAsync(d, a, n, second)); }});
      add("cudaMemcpyAsync D2H " + tail + " same",
          {[=](CUstream k) { SIM_OK(cuMemcpyDtoHAsync(a, d, n, k)); }});
      add("cudaMemcpyAsync D2H " + tail + " nb2",
          {[=](CUstream) { SIM_OK(cuMemcpyDtoHAsync(a, d, n, second)); }});
      add("cudaMemcpyAsync H2H " + tail + " same", {[=](CUstream k) {
            CUDA_MEMCPY2D p = host_to_host(b, a, n);
            SIM_OK(cuMemcpy2DAsync(&p, k));
          }});
    }
}

void blocking_calls::add_shaped_copies() {
  CUdeviceptr to = device_[0], from = device_[1];
  auto d2d = [=](CUstream k) { SIM_OK(cuMemcpyDtoDAsync(to, from, big_ / 2, k)); };
  add("cudaMemcpyAsync D2D 4M same", {d2d});
  add("cuMemcpyDtoDAsync", {d2d});
  add("cudaMemcpy D2D 4M", {[=](CUstream) { SIM_OK(cuMemcpyDtoD(to, from, big_ / 2)); }});
  add("cuMemcpyHtoD pageable 4M",
      {[=, this](CUstream) { SIM_OK(cuMemcpyHtoD(to, pageable_[0], big_ / 2)); }});
  add("cudaMemcpy H2H pageable 4M", {[=, this](CUstream) {
        CUDA_MEMCPY2D p = host_to_host(pageable_[0], pageable_[1], big_ / 2);
        SIM_OK(cuMemcpy2DUnaligned(&p));
      }});
  add("cudaMemcpy Default managed->device",
      {[=, this](CUstream) { SIM_OK(cuMemcpy(to, managed_, big_ / 2)); }});
  CUDA_MEMCPY2D down{};
  down.srcMemoryType = CU_MEMORYTYPE_DEVICE;
  down.srcDevice = to;
  down.dstMemoryType = CU_MEMORYTYPE_HOST;
  down.srcPitch = down.dstPitch = 1024;
  down.WidthInBytes = 512;
  down.Height = 64;
  CUDA_MEMCPY2D down_pinned = down, up = down;
  down.dstHost = pageable_[0];
  down_pinned.dstHost = pinned_[0];
  up.srcMemoryType = CU_MEMORYTYPE_HOST;
  up.srcHost = pageable_[0];
  up.dstMemoryType = CU_MEMORYTYPE_DEVICE;
  up.dstDevice = to;
  add("cudaMemcpy2D D2H pageable", {[=](CUstream) { SIM_OK(cuMemcpy2DUnaligned(&down)); }});
  add("cudaMemcpy2DAsync D2H pinned same",
      {[=](CUstream k) { SIM_OK(cuMemcpy2DAsync(&down_pinned, k)); }});
  add("cudaMemcpy2DAsync H2D pageable same",
      {[=](CUstream k) { SIM_OK(cuMemcpy2DAsync(&up, k)); }});
  add("cudaMemcpyToSymbol pageable 4",
      {[=, this](CUstream) { SIM_OK(cuMemcpyHtoD(symbol_, pageable_[0], 4)); }});
  add("cudaMemcpyToSymbolAsync pageable 4 same",
      {[=, this](CUstream k) { SIM_OK(cuMemcpyHtoDAsync(symbol_, pageable_[0], 4, k)); }});
  add("cudaMemcpyFromSymbol pageable 4",
      {[=, this](CUstream) { SIM_OK(cuMemcpyDtoH(pageable_[0], symbol_, 4)); }});
  add("cudaMemcpyPeer 0->0", {[=](CUstream) {
        CUcontext c = nullptr;
        SIM_OK(cuCtxGetCurrent(&c));
        SIM_OK(cuMemcpyPeer(to, c, from, c, big_ / 2));
      }});
}

void blocking_calls::add_memsets() {
  auto pinned = reinterpret_cast<CUdeviceptr>(pinned_[0]);
  struct target {
    const char* name;
    CUdeviceptr at;
  };
  for (const target& t :
       {target{"device", device_[0]}, target{"pinned", pinned}, target{"managed", managed_}}) {
    CUdeviceptr at = t.at;
    add(std::string("cudaMemset ") + t.name, {[=](CUstream) { SIM_OK(cuMemsetD8(at, 0, big_)); }});
    add(std::string("cudaMemsetAsync ") + t.name + " same",
        {[=](CUstream k) { SIM_OK(cuMemsetD8Async(at, 0, big_, k)); }});
  }
}

void blocking_calls::add_memory() {
  auto release = [=, this](CUstream) { SIM_OK(cuMemFree(memory_)); };
  auto release_host = [=, this](CUstream) { SIM_OK(cuMemFreeHost(host_)); };
  struct size {
    const char* name;
    size_t bytes;
  };
  for (const size& s : {size{"1M", 1 << 20}, size{"1G", 1 << 30}}) {
    size_t n = s.bytes;
    auto take = [=, this](CUstream) { SIM_OK(cuMemAlloc(&memory_, n)); };
    add(std::string("cudaMalloc ") + s.name, {take, nullptr, release});
    add(std::string("cudaFree ") + s.name, {release, take});
  }
  auto take_1m = [=, this](CUstream) { SIM_OK(cuMemAlloc(&memory_, 1 << 20)); };
  add("cuMemFree", {release, take_1m});
  add("cudaFree(nullptr)", {[](CUstream) { SIM_OK(cuMemFree(0)); }});
  auto take_host = [=, this](CUstream) { SIM_OK(cuMemHostAlloc(&host_, 1 << 20, 0)); };
  add("cudaMallocHost 1M", {take_host, nullptr, release_host});
  add("cudaFreeHost 1M", {release_host, take_host});
  add("cudaFreeHost 64M",
      {release_host, [=, this](CUstream) { SIM_OK(cuMemHostAlloc(&host_, 64 << 20, 0)); }});
  auto get_pages = [=, this](CUstream) { host_ = aligned_alloc(4096, 1 << 20); };
  auto pin = [=, this](CUstream) { SIM_OK(cuMemHostRegister(host_, 1 << 20, 0)); };
  auto unpin = [=, this](CUstream) { SIM_OK(cuMemHostUnregister(host_)); };
  add("cudaHostRegister 1M", {pin, get_pages, [=, this](CUstream k) {
                                unpin(k);
                                free(host_);
                              }});
  add("cudaHostUnregister 1M", {unpin,
                                [=](CUstream k) {
                                  get_pages(k);
                                  pin(k);
                                },
                                [=, this](CUstream) { free(host_); }});
  auto take_managed = [=, this](CUstream) {
    SIM_OK(cuMemAllocManaged(&memory_, 1 << 20, CU_MEM_ATTACH_GLOBAL));
  };
  add("cudaMallocManaged 1M", {take_managed, nullptr, release});
  add("cudaFree managed", {release, take_managed});
  auto take_array = [=, this](CUstream) {
    CUDA_ARRAY3D_DESCRIPTOR d{256, 256, 0, CU_AD_FORMAT_FLOAT, 1, 0};
    SIM_OK(cuArray3DCreate(&array_, &d));
  };
  auto release_array = [=, this](CUstream) { SIM_OK(cuArrayDestroy(array_)); };
  add("cudaMalloc3DArray", {take_array, nullptr, release_array});
  add("cudaFreeArray", {release_array, take_array});
  add("host touch managed (idle pages)", {[=, this](CUstream) {
        auto* bytes = reinterpret_cast<volatile char*>(managed_);
        bytes[0] = 1;
        bytes[big_ - 1] = 1;
      }});
}

void blocking_calls::add_pools() {
  auto take = [=, this](CUstream k) { SIM_OK(cuMemAllocAsync(&memory_, 1 << 20, k)); };
  auto release = [=, this](CUstream k) { SIM_OK(cuMemFreeAsync(memory_, k)); };
  add("cudaMallocAsync", {take, nullptr, release});
  add("cudaFreeAsync same", {release, take});
  add("cudaFree of async ptr", {[=, this](CUstream) { SIM_OK(cuMemFree(memory_)); },
                                [=, this](CUstream) { take(second_); }});
  add("cudaMemPoolTrimTo 0", {[](CUstream) {
                                CUmemoryPool pool;
                                SIM_OK(cuDeviceGetDefaultMemPool(&pool, 0));
                                SIM_OK(cuMemPoolTrimTo(pool, 0));
                              },
                              [=, this](CUstream) {
                                take(second_);
                                release(second_);
                              }});
}

void blocking_calls::add_handles() {
  auto make = [=, this](CUstream) { SIM_OK(cuStreamCreate(&stream_, CU_STREAM_DEFAULT)); };
  auto destroy = [=, this](CUstream) { SIM_OK(cuStreamDestroy(stream_)); };
  add("cudaStreamCreate", {make, nullptr, destroy});
  add("cudaStreamDestroy idle", {destroy, make});
  // The stream's own work has to be there at the call, not before the idle point.
  add("cudaStreamDestroy busy", {[=, this](CUstream) {
                                   REQUIRE(hostwait_sim_hold(stream_) == 0);
                                   SIM_OK(cuStreamDestroy(stream_));
                                 },
                                 [=, this](CUstream) { stream_ = sim_test::new_stream(); }});
  auto make_event = [=, this](CUstream) { made_event_ = sim_test::new_event(); };
  auto destroy_event = [=, this](CUstream) { SIM_OK(cuEventDestroy(made_event_)); };
  add("cudaEventCreate", {make_event, nullptr, destroy_event});
  add("cudaEventDestroy pending", {[=, this](CUstream k) {
                                     SIM_OK(cuEventRecord(made_event_, k));
                                     destroy_event(k);
                                   },
                                   make_event});
  add("cudaEventElapsedTime", {[=, this](CUstream) {
                                 float ms;
                                 SIM_OK(cuEventElapsedTime(&ms, event_, event_));
                               },
                               [=, this](CUstream) { SIM_OK(cuEventRecord(event_, nullptr)); }});
  add("cudaPointerGetAttributes", {[=, this](CUstream) {
        CUpointer_attribute which = CU_POINTER_ATTRIBUTE_MEMORY_TYPE;
        unsigned type;
        void* out = &type;
        SIM_OK(cuPointerGetAttributes(1, &which, &out, managed_));
      }});
}

void blocking_calls::add_launches() {
  auto launch = [=, this](CUstream on) {
    SIM_OK(cuLaunchKernel(tiny_, 1, 1, 1, 1, 1, 1, 0, on, nullptr, nullptr));
  };
  add("launch kernel legacy", {[=](CUstream) { launch(nullptr); }});
  add("launch kernel nb2", {[=, this](CUstream) { launch(second_); }});
  add("cudaLaunchHostFunc", {[](CUstream k) {
        SIM_OK(cuLaunchHostFunc(
            k, [](void*) {}, nullptr));
      }});
  auto make = [=, this](CUstream) {
    CUgraphNode node;
    SIM_OK(cuGraphCreate(&graph_, 0));
    SIM_OK(cuGraphAddEmptyNode(&node, graph_, nullptr, 0));
  };
  auto instantiate = [=, this](CUstream) {
    SIM_OK(cuGraphInstantiateWithFlags(&executable_, graph_, 0));
  };
  auto destroy = [=, this](CUstream) { SIM_OK(cuGraphExecDestroy(executable_)); };
  auto destroy_graph = [=, this](CUstream) { SIM_OK(cuGraphDestroy(graph_)); };
  auto make_both = [=](CUstream k) {
    make(k);
    instantiate(k);
  };
  auto destroy_both = [=](CUstream k) {
    destroy(k);
    destroy_graph(k);
  };
  auto run = [=, this](CUstream) { SIM_OK(cuGraphLaunch(executable_, second_)); };
  add("cudaGraphInstantiate", {instantiate, make, destroy_both});
  add("cudaGraphExecDestroy", {destroy, make_both, destroy_graph});
  add("cudaGraphLaunch nb2", {run,
                              [=](CUstream k) {
                                make_both(k);
                                run(k);
                              },
                              destroy_both});
}

void blocking_calls::add_settings() {
  CUmemLocation on_device{}, on_host{};
  on_device.type = CU_MEM_LOCATION_TYPE_DEVICE;
  on_host.type = CU_MEM_LOCATION_TYPE_HOST;
  auto prefetch = [=, this](CUmemLocation where) {
    SIM_OK(cuMemPrefetchAsync(managed_, big_, where, 0, second_));
  };
  add("cudaMemPrefetchAsync man->dev nb2", {[=](CUstream) { prefetch(on_device); }});
  add("cudaMemPrefetchAsync man->host nb2", {[=](CUstream) { prefetch(on_host); }});
  add("cudaMemAdvise", {[=, this](CUstream) {
        SIM_OK(cuMemAdvise(managed_, big_, CU_MEM_ADVISE_SET_PREFERRED_LOCATION, on_device));
      }});
  auto set_limit = [](CUlimit which, size_t more) {
    size_t value;
    SIM_OK(cuCtxGetLimit(&value, which));
    SIM_OK(cuCtxSetLimit(which, value + more));
  };
  add("cudaDeviceSetLimit printf",
      {[=](CUstream) { set_limit(CU_LIMIT_PRINTF_FIFO_SIZE, 1 << 20); }});
  add("cudaDeviceSetLimit stack", {[=](CUstream) { set_limit(CU_LIMIT_STACK_SIZE, 1024); }});
  add("cudaDeviceSetCacheConfig",
      {[](CUstream) { SIM_OK(cuCtxSetCacheConfig(CU_FUNC_CACHE_PREFER_L1)); }});
  add("cudaMemGetInfo", {[](CUstream) {
        size_t free_bytes, total;
        SIM_OK(cuMemGetInfo(&free_bytes, &total));
      }});
  add("cudaSetDevice", {[](CUstream) {
        CUcontext current;
        SIM_OK(cuCtxGetCurrent(&current));
        SIM_OK(cuCtxSetCurrent(current));
      }});
  add("cudaFuncSetAttribute", {[=, this](CUstream) {
        SIM_OK(cuFuncSetAttribute(tiny_, CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT, 50));
      }});
  add("cudaOccupancy", {[=, this](CUstream) {
        int blocks;
        SIM_OK(cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(&blocks, tiny_, 32, 0, 0));
      }});
}

void blocking_calls::add_modules() {
  auto load = [=, this](CUstream) { SIM_OK(cuModuleLoadData(&made_module_, ptx)); };
  auto unload = [=, this](CUstream) { SIM_OK(cuModuleUnload(made_module_)); };
  add("cuModuleLoadData ptx", {load, nullptr, unload});
  add("cuModuleUnload", {unload, load});
}
