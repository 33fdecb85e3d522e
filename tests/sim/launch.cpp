// SPDX-License-Identifier: Apache-2.0
// Copyright The hostwait authors
// Kernels and launches. Two names mean something, plain or mangled; all others complete at once:
//   spin(unsigned long long ns)                     keeps its stream busy that long
//   store64(uint64_t* where, uint64_t value)        writes the value
#include <algorithm>
#include <cstdlib>
#include <cstring>

#include "capture.hpp"
#include "launch.hpp"
#include "memory.hpp"
#include "module.hpp"

namespace hostwait::sim {

function* find_function(CUfunction handle) {
  auto* f = reinterpret_cast<function*>(handle);
  return f && f->magic == function::right_magic ? f : nullptr;
}

namespace {

bool named(const function* f, const char* plain) {
  std::string mangled = "_Z" + std::to_string(strlen(plain)) + plain;
  return f->name == plain || f->name.starts_with(mangled);
}

// The n-th eight-byte parameter in either way of passing parameters.
bool parameter(void** parameters, void** extra, size_t n, uint64_t* out) {
  if (parameters) {
    memcpy(out, parameters[n], sizeof *out);
    return true;
  }
  const char* buffer = nullptr;
  size_t size = 0;
  for (; extra && *extra != CU_LAUNCH_PARAM_END; extra += 2) {
    if (extra[0] == CU_LAUNCH_PARAM_BUFFER_POINTER) buffer = static_cast<const char*>(extra[1]);
    if (extra[0] == CU_LAUNCH_PARAM_BUFFER_SIZE) size = *static_cast<size_t*>(extra[1]);
  }
  if (!buffer || size < (n + 1) * sizeof *out) return false;
  memcpy(out, buffer + n * sizeof *out, sizeof *out);
  return true;
}

// Measured: the first launch that needs a bigger local-memory stack waits for every stream.
void grow_local_memory(stream* s, const function* f) {
  context* ctx = s->ctx;
  {
    lock held(q().mutex);
    if (s->capturing || f->local_bytes <= ctx->local_bytes) return;
    ctx->local_bytes = f->local_bytes;
  }
  wait_for_context(ctx);
}

}  // namespace

CUresult kernel_work(CUfunction handle, void** parameters, void** extra, work* out) {
  function* f = find_function(handle);
  if (!f) return CUDA_ERROR_INVALID_HANDLE;
  if (named(f, "spin")) {
    if (!parameter(parameters, extra, 0, &out->busy_ns)) return CUDA_ERROR_INVALID_VALUE;
  } else if (named(f, "store64")) {
    uint64_t where, value;
    if (!parameter(parameters, extra, 0, &where) || !parameter(parameters, extra, 1, &value))
      return CUDA_ERROR_INVALID_VALUE;
    if (!find_range(static_cast<CUdeviceptr>(where))) return CUDA_ERROR_ILLEGAL_ADDRESS;
    out->run = [where, value] { memcpy(reinterpret_cast<void*>(where), &value, sizeof value); };
  }
  return CUDA_SUCCESS;
}

namespace {

bool launches_block() {
  static const bool set = [] {
    const char* text = getenv("CUDA_LAUNCH_BLOCKING");
    return text && *text == '1';
  }();
  return set;
}

CUresult launch(CUfunction handle, CUstream on, bool per_thread, void** parameters, void** extra) {
  CUresult error;
  stream* s = find_stream(on, per_thread, &error);
  if (!s) return error;
  work item;
  if (CUresult result = kernel_work(handle, parameters, extra, &item)) return result;
  grow_local_memory(s, find_function(handle));
  lock held(q().mutex);
  point done{};
  bool waits = launches_block() && !s->capturing;
  if (CUresult result = enqueue_locked(held, s, CU_GRAPH_NODE_TYPE_KERNEL, std::move(item), &done))
    return result;
  if (waits) wait_for(held, {done});
  return CUDA_SUCCESS;
}

CUresult function_name(const char** out, function* f) {
  if (!f) return CUDA_ERROR_INVALID_HANDLE;
  if (!out) return CUDA_ERROR_INVALID_VALUE;
  *out = f->name.c_str();
  return CUDA_SUCCESS;
}

CUresult function_attribute(int* out, CUfunction_attribute which, function* f) {
  if (!f) return CUDA_ERROR_INVALID_HANDLE;
  if (!out || which < 0 || which >= CU_FUNC_ATTRIBUTE_MAX) return CUDA_ERROR_INVALID_VALUE;
  switch (which) {
    case CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK:
      *out = 1024;
      break;
    case CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES:
      *out = static_cast<int>(f->local_bytes);
      break;
    case CU_FUNC_ATTRIBUTE_NUM_REGS:
      *out = 32;
      break;
    case CU_FUNC_ATTRIBUTE_PTX_VERSION:
    case CU_FUNC_ATTRIBUTE_BINARY_VERSION:
      *out = 90;
      break;
    default:
      *out = f->attributes[which];
  }
  return CUDA_SUCCESS;
}

CUresult set_function_attribute(function* f, CUfunction_attribute which, int value) {
  if (!f) return CUDA_ERROR_INVALID_HANDLE;
  if (which < 0 || which >= CU_FUNC_ATTRIBUTE_MAX) return CUDA_ERROR_INVALID_VALUE;
  f->attributes[which] = value;
  return CUDA_SUCCESS;
}

CUresult module_of(CUmodule* out, function* f) {
  if (!f) return CUDA_ERROR_INVALID_HANDLE;
  if (!out) return CUDA_ERROR_INVALID_VALUE;
  *out = reinterpret_cast<CUmodule>(f->in);
  return CUDA_SUCCESS;
}

CUresult kernel_function(CUfunction* out, CUkernel kernel) {
  auto handle = reinterpret_cast<CUfunction>(kernel);
  if (!find_function(handle)) return CUDA_ERROR_INVALID_HANDLE;
  if (!out) return CUDA_ERROR_INVALID_VALUE;
  *out = handle;
  return CUDA_SUCCESS;
}

CUresult loaded(CUfunctionLoadingState* out, function* f) {
  if (!f) return CUDA_ERROR_INVALID_HANDLE;
  if (!out) return CUDA_ERROR_INVALID_VALUE;
  *out = CU_FUNCTION_LOADING_STATE_LOADED;
  return CUDA_SUCCESS;
}

CUresult known(function* f) {
  return f ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE;
}

CUresult occupancy(int* blocks, function* f, int threads) {
  if (!f) return CUDA_ERROR_INVALID_HANDLE;
  if (!blocks || threads <= 0) return CUDA_ERROR_INVALID_VALUE;
  *blocks = threads > 1024 ? 0 : std::min(32, 2048 / threads);
  return CUDA_SUCCESS;
}

CUresult best_block(int* grid, int* block, function* f) {
  if (!f) return CUDA_ERROR_INVALID_HANDLE;
  if (!grid || !block) return CUDA_ERROR_INVALID_VALUE;
  *grid = 264;
  *block = 1024;
  return CUDA_SUCCESS;
}

function* of(CUfunction f) {
  return find_function(f);
}
function* of(CUkernel k) {
  return find_function(reinterpret_cast<CUfunction>(k));
}

}  // namespace
}  // namespace hostwait::sim

using namespace hostwait::sim;

SIM_API_PTSZ(cuLaunchKernel,
             (CUfunction f, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned,
              CUstream s, void** parameters, void** extra),
             launch(f, s, per_thread, parameters, extra))
SIM_API_PTSZ(cuLaunchKernelEx,
             (const CUlaunchConfig* config, CUfunction f, void** parameters, void** extra),
             config ? launch(f, config->hStream, per_thread, parameters, extra)
                    : CUDA_ERROR_INVALID_VALUE)
SIM_API_PTSZ(cuLaunchCooperativeKernel,
             (CUfunction f, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned,
              CUstream s, void** parameters),
             launch(f, s, per_thread, parameters, nullptr))
SIM_API(cuFuncGetName, (const char** out, CUfunction f), function_name(out, of(f)))
SIM_API(cuFuncGetAttribute, (int* out, CUfunction_attribute which, CUfunction f),
        function_attribute(out, which, of(f)))
SIM_API(cuFuncSetAttribute, (CUfunction f, CUfunction_attribute which, int value),
        set_function_attribute(of(f), which, value))
SIM_API(cuFuncSetCacheConfig, (CUfunction f, CUfunc_cache), known(of(f)))
SIM_API(cuFuncSetSharedMemConfig, (CUfunction f, CUsharedconfig), known(of(f)))
SIM_API(cuFuncGetModule, (CUmodule * out, CUfunction f), module_of(out, of(f)))
SIM_API(cuFuncIsLoaded, (CUfunctionLoadingState * out, CUfunction f), loaded(out, of(f)))
SIM_API(cuFuncLoad, (CUfunction f), known(of(f)))
SIM_API(cuKernelGetFunction, (CUfunction * out, CUkernel k), kernel_function(out, k))
SIM_API(cuKernelGetName, (const char** out, CUkernel k), function_name(out, of(k)))
SIM_API(cuKernelGetAttribute, (int* out, CUfunction_attribute which, CUkernel k, CUdevice),
        function_attribute(out, which, of(k)))
SIM_API(cuKernelSetAttribute, (CUfunction_attribute which, int value, CUkernel k, CUdevice),
        set_function_attribute(of(k), which, value))
SIM_API(cuKernelSetCacheConfig, (CUkernel k, CUfunc_cache, CUdevice), known(of(k)))
SIM_API(cuKernelGetLibrary, (CUlibrary * out, CUkernel k),
        module_of(reinterpret_cast<CUmodule*>(out), of(k)))
SIM_API(cuOccupancyMaxActiveBlocksPerMultiprocessor,
        (int* blocks, CUfunction f, int threads, size_t), occupancy(blocks, of(f), threads))
SIM_API(cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags,
        (int* blocks, CUfunction f, int threads, size_t, unsigned),
        occupancy(blocks, of(f), threads))
SIM_API(cuOccupancyMaxPotentialBlockSize,
        (int* grid, int* block, CUfunction f, CUoccupancyB2DSize, size_t, int),
        best_block(grid, block, of(f)))
SIM_API(cuOccupancyMaxPotentialBlockSizeWithFlags,
        (int* grid, int* block, CUfunction f, CUoccupancyB2DSize, size_t, int, unsigned),
        best_block(grid, block, of(f)))
