// SPDX-License-Identifier: Apache-2.0
// Copyright The hostwait authors
// Modules, libraries, kernels and hand-built graphs: names, globals, and the waits of loading.
#include <string>

#include "sim_test.hpp"

using namespace sim_test;

namespace {

constexpr const char* ptx =
    ".version 8.0\n.target sm_90\n.address_size 64\n"
    ".visible .global .align 4 .b32 counters[16];\n"
    ".visible .entry _Z4tinyPi(.param .u64 p){ret;}\n"
    ".visible .entry hungry()\n{\n\t.local .align 4 .b8 \t__local_depot1[260000];\n\tret;\n}\n";

CUmodule load() {
  CUmodule m = nullptr;
  SIM_OK(cuModuleLoadData(&m, ptx));
  return m;
}

CUfunction function(CUmodule m, const char* name) {
  CUfunction f = nullptr;
  SIM_OK(cuModuleGetFunction(&f, m, name));
  return f;
}

void launch(CUfunction f, CUstream s) {
  SIM_OK(cuLaunchKernel(f, 1, 1, 1, 1, 1, 1, 0, s, nullptr, nullptr));
}

}  // namespace

TEST_CASE("PTX gives exactly its entries and globals") {
  own_context context;
  CUmodule m = load();
  CUfunction f = function(m, "_Z4tinyPi");
  const char* name;
  SIM_OK(cuFuncGetName(&name, f));
  CHECK(std::string(name) == "_Z4tinyPi");
  CHECK(cuModuleGetFunction(&f, m, "absent") == CUDA_ERROR_NOT_FOUND);
  unsigned count = 0;
  SIM_OK(cuModuleGetFunctionCount(&count, m));
  CHECK(count == 2);
  CUdeviceptr at;
  size_t size;
  SIM_OK(cuModuleGetGlobal(&at, &size, m, "counters"));
  CHECK(size == 64);
  SIM_OK(cuMemsetD32(at, 1, 16));
  CHECK(cuModuleGetGlobal(&at, &size, m, "absent") == CUDA_ERROR_NOT_FOUND);
  SIM_OK(cuModuleUnload(m));
  CHECK(cuModuleUnload(m) == CUDA_ERROR_INVALID_HANDLE);
}

TEST_CASE("a first launch that needs a bigger local memory waits, later ones do not") {
  own_context context;
  CUstream busy = new_stream(), s = new_stream();
  CUmodule m = load();
  CUfunction hungry = function(m, "hungry"), tiny = function(m, "_Z4tinyPi");
  int bytes = 0;
  SIM_OK(cuFuncGetAttribute(&bytes, CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES, hungry));
  CHECK(bytes == 260000);
  CHECK_FALSE(host_stops_behind(busy, [&] { launch(tiny, s); }));
  SIM_OK(cuCtxSynchronize());
  CHECK(host_stops_behind(busy, [&] { launch(hungry, s); }));
  SIM_OK(cuCtxSynchronize());
  CHECK_FALSE(host_stops_behind(busy, [&] { launch(hungry, s); }));
}

TEST_CASE("a library waits when it is loaded and at its first kernel") {
  own_context context;
  CUstream busy = new_stream();
  CUlibrary library = nullptr;
  CHECK(host_stops_behind(busy, [&] {
    SIM_OK(cuLibraryLoadData(&library, ptx, nullptr, nullptr, 0, nullptr, nullptr, 0));
  }));
  CUkernel kernel = nullptr;
  SIM_OK(cuCtxSynchronize());
  CHECK(
      host_stops_behind(busy, [&] { SIM_OK(cuLibraryGetKernel(&kernel, library, "_Z4tinyPi")); }));
  SIM_OK(cuCtxSynchronize());
  CHECK_FALSE(
      host_stops_behind(busy, [&] { SIM_OK(cuLibraryGetKernel(&kernel, library, "hungry")); }));
  CUfunction f = nullptr;
  SIM_OK(cuKernelGetFunction(&f, kernel));
  launch(reinterpret_cast<CUfunction>(kernel), busy);
  SIM_OK(cuCtxSynchronize());
  CHECK(host_stops_behind(busy, [&] { SIM_OK(cuLibraryUnload(library)); }));
}

TEST_CASE("a hand-built graph runs its nodes in the order of its edges") {
  own_context context;
  CUstream s = new_stream();
  CUdeviceptr a = new_memory(8), b = new_memory(8);
  SIM_OK(cuMemsetD8(b, 0, 8));
  CUgraph g = nullptr;
  SIM_OK(cuGraphCreate(&g, 0));
  CUDA_MEMCPY3D copy{};
  copy.srcMemoryType = copy.dstMemoryType = CU_MEMORYTYPE_DEVICE;
  copy.srcDevice = a;
  copy.dstDevice = b;
  copy.WidthInBytes = 8;
  copy.Height = copy.Depth = 1;
  CUDA_MEMSET_NODE_PARAMS set{};
  set.dst = a;
  set.elementSize = 1;
  set.value = 6;
  set.width = 8;
  set.height = 1;
  CUgraphNode copying, setting;
  SIM_OK(cuGraphAddMemcpyNode(&copying, g, nullptr, 0, &copy, context.context));
  SIM_OK(cuGraphAddMemsetNode(&setting, g, nullptr, 0, &set, context.context));
  SIM_OK(cuGraphAddDependencies(g, &setting, &copying, nullptr, 1));
  CUgraphExec run = nullptr;
  SIM_OK(cuGraphInstantiate(&run, g, 0));
  SIM_OK(cuGraphLaunch(run, s));
  SIM_OK(cuStreamSynchronize(s));
  CHECK(*reinterpret_cast<char*>(b) == 6);
  size_t edges = 0;
  SIM_OK(cuGraphGetEdges(g, nullptr, nullptr, nullptr, &edges));
  CHECK(edges == 1);
  SIM_OK(cuGraphAddDependencies(g, &copying, &setting, nullptr, 1));
  CHECK(cuGraphInstantiate(&run, g, 0) == CUDA_ERROR_INVALID_VALUE);
}
