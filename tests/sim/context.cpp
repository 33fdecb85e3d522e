// SPDX-License-Identifier: Apache-2.0
// Copyright The hostwait authors
// Contexts: primary and other ones, the per-thread stack, limits, synchronization.
#include <algorithm>

#include "capture.hpp"
#include "memory.hpp"
#include "state.hpp"

namespace hostwait::sim {

device devices[max_devices];

namespace {

std::atomic<uint64_t> next_context_id{1};
std::vector<context*>& registry() {
  static auto* const list = new std::vector<context*>;
  return *list;
}

void set_default_limits(context* ctx) {
  std::fill(std::begin(ctx->limits), std::end(ctx->limits), 0);
  ctx->limits[CU_LIMIT_STACK_SIZE] = 1024;
  ctx->limits[CU_LIMIT_PRINTF_FIFO_SIZE] = 7'340'032;
  ctx->limits[CU_LIMIT_MALLOC_HEAP_SIZE] = 8'388'608;
  ctx->limits[CU_LIMIT_DEV_RUNTIME_SYNC_DEPTH] = 2;
  ctx->limits[CU_LIMIT_DEV_RUNTIME_PENDING_LAUNCH_COUNT] = 2048;
  ctx->limits[CU_LIMIT_MAX_L2_FETCH_GRANULARITY] = 128;
}

}  // namespace

context* make_context(int number, bool primary, unsigned flags) {
  auto* ctx = new context;
  ctx->device = number;
  ctx->primary = primary;
  ctx->flags = flags;
  ctx->unique_id = next_context_id++;
  set_default_limits(ctx);
  lock held(q().mutex);
  registry().push_back(ctx);
  held.unlock();
  ctx->legacy = make_stream(ctx, stream_kind::legacy, 0, 0);
  return ctx;
}

void destroy_context(context* ctx) {
  wait_for_context(ctx);
  {
    lock held(q().mutex);
    for (stream* s : ctx->streams) s->alive = false;
    ctx->alive = false;
  }
  release_memory_of(ctx);
}

context* find_context(CUcontext handle) {
  auto* ctx = reinterpret_cast<context*>(handle);
  lock held(q().mutex);
  auto& all = registry();
  bool known = std::find(all.begin(), all.end(), ctx) != all.end();
  return known && ctx->alive ? ctx : nullptr;
}

context* current_context() {
  thread_state& t = self();
  return t.stack.empty() || !t.stack.back() || !t.stack.back()->alive ? nullptr : t.stack.back();
}

context* primary_context(int number) {
  static std::mutex mutex;
  std::lock_guard guard(mutex);
  device& d = devices[number];
  if (!d.primary || !d.primary->alive) d.primary = make_context(number, true, d.primary_flags);
  return d.primary;
}

namespace {

std::mutex primary_mutex;

CUresult create(CUcontext* out, unsigned flags, CUdevice number) {
  if (!out) return CUDA_ERROR_INVALID_VALUE;
  if (!device_valid(number)) return CUDA_ERROR_INVALID_DEVICE;
  context* ctx = make_context(number, false, flags);
  self().stack.push_back(ctx);
  *out = handle_of(ctx);
  return CUDA_SUCCESS;
}

CUresult destroy(CUcontext handle) {
  context* ctx = find_context(handle);
  if (!ctx || ctx->primary) return CUDA_ERROR_INVALID_CONTEXT;
  destroy_context(ctx);
  auto& stack = self().stack;
  if (!stack.empty() && stack.back() == ctx) stack.pop_back();
  return CUDA_SUCCESS;
}

CUresult push(CUcontext handle) {
  context* ctx = find_context(handle);
  if (!ctx) return CUDA_ERROR_INVALID_CONTEXT;
  self().stack.push_back(ctx);
  return CUDA_SUCCESS;
}

CUresult pop(CUcontext* out) {
  auto& stack = self().stack;
  if (stack.empty()) return CUDA_ERROR_INVALID_CONTEXT;
  if (out) *out = handle_of(stack.back());
  stack.pop_back();
  return CUDA_SUCCESS;
}

CUresult set_current(CUcontext handle) {
  auto& stack = self().stack;
  if (!handle) {
    if (!stack.empty()) stack.pop_back();
    return CUDA_SUCCESS;
  }
  if (!stack.empty() && handle_of(stack.back()) == handle && stack.back()->alive)
    return CUDA_SUCCESS;
  context* ctx = find_context(handle);
  if (!ctx) return CUDA_ERROR_INVALID_CONTEXT;
  if (stack.empty())
    stack.push_back(ctx);
  else
    stack.back() = ctx;
  return CUDA_SUCCESS;
}

CUresult get_current(CUcontext* out) {
  if (!out) return CUDA_ERROR_INVALID_VALUE;
  auto& stack = self().stack;
  *out = stack.empty() ? nullptr : handle_of(stack.back());
  return CUDA_SUCCESS;
}

CUresult synchronize(context* ctx) {
  if (!ctx) return CUDA_ERROR_INVALID_CONTEXT;
  if (CUresult result = refuse_in_capture(ctx, nullptr)) return result;
  wait_for_context(ctx);
  return CUDA_SUCCESS;
}

// Null means the current one, as in the _v2 forms.
context* given_or_current(CUcontext handle) {
  return handle ? find_context(handle) : current_context();
}

CUresult get_device(context* ctx, CUdevice* out) {
  if (!out) return CUDA_ERROR_INVALID_VALUE;
  if (!ctx) return CUDA_ERROR_INVALID_CONTEXT;
  *out = ctx->device;
  return CUDA_SUCCESS;
}

CUresult set_limit(CUlimit limit, size_t value) {
  context* ctx = current_context();
  if (!ctx) return CUDA_ERROR_INVALID_CONTEXT;
  if (static_cast<unsigned>(limit) >= CU_LIMIT_MAX) return CUDA_ERROR_UNSUPPORTED_LIMIT;
  // Measured: a new stack size waits for every stream, a new printf buffer does not.
  if (limit == CU_LIMIT_STACK_SIZE && ctx->limits[limit] != value) wait_for_context(ctx);
  ctx->limits[limit] = value;
  return CUDA_SUCCESS;
}

CUresult get_limit(size_t* out, CUlimit limit) {
  context* ctx = current_context();
  if (!ctx) return CUDA_ERROR_INVALID_CONTEXT;
  if (!out) return CUDA_ERROR_INVALID_VALUE;
  if (static_cast<unsigned>(limit) >= CU_LIMIT_MAX) return CUDA_ERROR_UNSUPPORTED_LIMIT;
  *out = ctx->limits[limit];
  return CUDA_SUCCESS;
}

template <class T, class V>
CUresult put(T* out, V value) {
  if (!current_context()) return CUDA_ERROR_INVALID_CONTEXT;
  if (!out) return CUDA_ERROR_INVALID_VALUE;
  *out = static_cast<T>(value);
  return CUDA_SUCCESS;
}

CUresult context_id(CUcontext handle, unsigned long long* out) {
  context* ctx = given_or_current(handle);
  if (!ctx) return CUDA_ERROR_INVALID_CONTEXT;
  if (!out) return CUDA_ERROR_INVALID_VALUE;
  *out = ctx->unique_id;
  return CUDA_SUCCESS;
}

CUresult priority_range(int* least, int* greatest) {
  if (!current_context()) return CUDA_ERROR_INVALID_CONTEXT;
  if (least) *least = 0;
  if (greatest) *greatest = -5;
  return CUDA_SUCCESS;
}

CUresult cache_config(CUfunc_cache config) {
  context* ctx = current_context();
  if (!ctx) return CUDA_ERROR_INVALID_CONTEXT;
  ctx->cache_config = config;
  return CUDA_SUCCESS;
}

CUresult enable_peer(CUcontext handle, bool enable) {
  context* ctx = current_context();
  context* peer = find_context(handle);
  if (!ctx || !peer) return CUDA_ERROR_INVALID_CONTEXT;
  if (peer->device == ctx->device) return CUDA_ERROR_INVALID_DEVICE;
  uint64_t bit = uint64_t{1} << peer->device;
  if (enable == !!(ctx->peers & bit))
    return enable ? CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED : CUDA_ERROR_PEER_ACCESS_NOT_ENABLED;
  ctx->peers ^= bit;
  return CUDA_SUCCESS;
}

CUresult primary_retain(CUcontext* out, CUdevice number) {
  if (!out) return CUDA_ERROR_INVALID_VALUE;
  if (!device_valid(number)) return CUDA_ERROR_INVALID_DEVICE;
  context* ctx = primary_context(number);
  std::lock_guard guard(primary_mutex);
  ++devices[number].primary_references;
  *out = handle_of(ctx);
  return CUDA_SUCCESS;
}

CUresult primary_release(CUdevice number, bool reset) {
  if (!device_valid(number)) return CUDA_ERROR_INVALID_DEVICE;
  std::lock_guard guard(primary_mutex);
  device& d = devices[number];
  bool active = d.primary && d.primary->alive;
  if (!reset) {
    if (!active || d.primary_references == 0) return CUDA_ERROR_INVALID_CONTEXT;
    if (--d.primary_references) return CUDA_SUCCESS;
  }
  if (active) destroy_context(d.primary);
  return CUDA_SUCCESS;
}

CUresult primary_set_flags(CUdevice number, unsigned flags) {
  if (!device_valid(number)) return CUDA_ERROR_INVALID_DEVICE;
  std::lock_guard guard(primary_mutex);
  devices[number].primary_flags = flags;
  return CUDA_SUCCESS;
}

CUresult primary_state(CUdevice number, unsigned* flags, int* active) {
  if (!device_valid(number)) return CUDA_ERROR_INVALID_DEVICE;
  std::lock_guard guard(primary_mutex);
  device& d = devices[number];
  if (flags) *flags = d.primary_flags;
  if (active) *active = d.primary && d.primary->alive;
  return CUDA_SUCCESS;
}

}  // namespace
}  // namespace hostwait::sim

using namespace hostwait::sim;

SIM_API(cuCtxCreate_v2, (CUcontext * out, unsigned flags, CUdevice dev), create(out, flags, dev))
SIM_API(cuCtxCreate_v3, (CUcontext * out, CUexecAffinityParam*, int, unsigned flags, CUdevice dev),
        create(out, flags, dev))
SIM_API(cuCtxCreate_v4, (CUcontext * out, CUctxCreateParams*, unsigned flags, CUdevice dev),
        create(out, flags, dev))
SIM_API(cuCtxDestroy, (CUcontext ctx), destroy(ctx))
SIM_API(cuCtxDestroy_v2, (CUcontext ctx), destroy(ctx))
SIM_API(cuCtxPushCurrent, (CUcontext ctx), push(ctx))
SIM_API(cuCtxPushCurrent_v2, (CUcontext ctx), push(ctx))
SIM_API(cuCtxPopCurrent, (CUcontext * out), pop(out))
SIM_API(cuCtxPopCurrent_v2, (CUcontext * out), pop(out))
SIM_API(cuCtxSetCurrent, (CUcontext ctx), set_current(ctx))
SIM_API(cuCtxGetCurrent, (CUcontext * out), get_current(out))
SIM_API(cuCtxGetDevice, (CUdevice * out), get_device(current_context(), out))
SIM_API(cuCtxGetDevice_v2, (CUdevice * out, CUcontext ctx), get_device(given_or_current(ctx), out))
SIM_API(cuCtxSynchronize, (), synchronize(current_context()))
SIM_API(cuCtxSynchronize_v2, (CUcontext ctx), synchronize(given_or_current(ctx)))
SIM_API(cuCtxSetLimit, (CUlimit limit, size_t value), set_limit(limit, value))
SIM_API(cuCtxGetLimit, (size_t * out, CUlimit limit), get_limit(out, limit))
SIM_API(cuCtxGetFlags, (unsigned* out), put(out, current_context() ? current_context()->flags : 0))
SIM_API(cuCtxGetId, (CUcontext ctx, unsigned long long* out), context_id(ctx, out))
SIM_API(cuCtxGetApiVersion, (CUcontext ctx, unsigned* out),
        given_or_current(ctx) ? put(out, 3020) : CUDA_ERROR_INVALID_CONTEXT)
SIM_API(cuCtxGetStreamPriorityRange, (int* least, int* greatest), priority_range(least, greatest))
SIM_API(cuCtxSetCacheConfig, (CUfunc_cache config), cache_config(config))
SIM_API(cuCtxGetCacheConfig, (CUfunc_cache * out),
        put(out, current_context() ? current_context()->cache_config : 0))
SIM_API(cuCtxGetSharedMemConfig, (CUsharedconfig * out), put(out, 1))
SIM_API(cuCtxSetSharedMemConfig, (CUsharedconfig),
        current_context() ? CUDA_SUCCESS : CUDA_ERROR_INVALID_CONTEXT)
SIM_API(cuCtxEnablePeerAccess, (CUcontext ctx, unsigned), enable_peer(ctx, true))
SIM_API(cuCtxDisablePeerAccess, (CUcontext ctx), enable_peer(ctx, false))
SIM_API(cuDevicePrimaryCtxRetain, (CUcontext * out, CUdevice dev), primary_retain(out, dev))
SIM_API(cuDevicePrimaryCtxRelease, (CUdevice dev), primary_release(dev, false))
SIM_API(cuDevicePrimaryCtxRelease_v2, (CUdevice dev), primary_release(dev, false))
SIM_API(cuDevicePrimaryCtxReset, (CUdevice dev), primary_release(dev, true))
SIM_API(cuDevicePrimaryCtxReset_v2, (CUdevice dev), primary_release(dev, true))
SIM_API(cuDevicePrimaryCtxSetFlags, (CUdevice dev, unsigned flags), primary_set_flags(dev, flags))
SIM_API(cuDevicePrimaryCtxSetFlags_v2, (CUdevice dev, unsigned flags),
        primary_set_flags(dev, flags))
SIM_API(cuDevicePrimaryCtxGetState, (CUdevice dev, unsigned* flags, int* active),
        primary_state(dev, flags, active))
