// SPDX-License-Identifier: Apache-2.0
// Copyright The hostwait authors
// Streams: handles, creation, waits, queries, host functions, memory waits and writes.
#include <algorithm>

#include "capture.hpp"

namespace hostwait::sim {
namespace {

std::atomic<uint64_t> next_stream_id{1};

// The calling thread's own stream of the current context.
stream* own_stream(context* ctx) {
  for (stream* s : self().streams)
    if (s->ctx == ctx) return s;
  stream* s = make_stream(ctx, stream_kind::per_thread, CU_STREAM_DEFAULT, 0);
  self().streams.push_back(s);
  return s;
}

}  // namespace

thread_state& self() {
  // Destructors of a thread and exit handlers call the driver, too, after the state has gone: they
  // get another one with the same context, which is never freed.
  static thread_local bool ended = false;
  static thread_local context* last = nullptr;
  static thread_local thread_state* late = nullptr;
  struct holder {
    thread_state state;
    ~holder() {
      if (!state.stack.empty()) last = state.stack.back();
      ended = true;
    }
  };
  if (!ended) {
    static thread_local holder here;
    return here.state;
  }
  if (late == nullptr) {
    late = kept(new thread_state);
    if (last != nullptr) late->stack.push_back(last);
  }
  return *late;
}

thread_state::~thread_state() {
  for (stream* s : streams) s->alive = false;
}

stream* make_stream(context* ctx, stream_kind kind, unsigned flags, int priority) {
  auto* s = new stream;
  s->kind = kind;
  s->ctx = ctx;
  s->flags = flags;
  s->priority = priority;
  s->unique_id = next_stream_id++;
  lock held(q().mutex);
  // Drained streams that were destroyed are of no interest to waits any more.
  std::erase_if(ctx->streams, [](stream* old) { return !old->alive && old->queue.empty(); });
  ctx->streams.push_back(s);
  q().all_streams.push_back(s);
  return s;
}

stream* find_stream(CUstream handle, bool per_thread, CUresult* error) {
  auto value = reinterpret_cast<uintptr_t>(handle);
  if (value > 2) {
    auto* s = reinterpret_cast<stream*>(handle);
    if (s->magic == stream::right_magic && s->alive.load(std::memory_order_relaxed)) return s;
    *error = CUDA_ERROR_INVALID_HANDLE;
    return nullptr;
  }
  context* ctx = current_context();
  if (!ctx) {
    *error = CUDA_ERROR_INVALID_CONTEXT;
    return nullptr;
  }
  if (value == 2 || (value == 0 && per_thread)) return own_stream(ctx);
  return ctx->legacy;
}

namespace {

CUresult create(CUstream* out, unsigned flags, int priority) {
  context* ctx = current_context();
  if (!ctx) return CUDA_ERROR_INVALID_CONTEXT;
  if (!out || flags > CU_STREAM_NON_BLOCKING) return CUDA_ERROR_INVALID_VALUE;
  bool blocking = flags == CU_STREAM_DEFAULT;
  *out = handle_of(make_stream(ctx, blocking ? stream_kind::blocking : stream_kind::non_blocking,
                               flags, std::clamp(priority, -5, 0)));
  return CUDA_SUCCESS;
}

// Returns at once also when work is left: it completes without the handle.
CUresult destroy(CUstream handle) {
  CUresult error;
  if (reinterpret_cast<uintptr_t>(handle) <= 2) return CUDA_ERROR_INVALID_HANDLE;
  stream* s = find_stream(handle, false, &error);
  if (!s) return error;
  lock held(q().mutex);
  if (s->capturing) invalidate(s->capturing);
  s->alive = false;
  return CUDA_SUCCESS;
}

CUresult synchronize(CUstream handle, bool per_thread) {
  CUresult error;
  stream* s = find_stream(handle, per_thread, &error);
  if (!s) return error;
  if (CUresult result = refuse_in_capture(nullptr, s)) return result;
  if (idle(s)) return CUDA_SUCCESS;
  lock held(q().mutex);
  wait_for(held, tail_of(s));
  return CUDA_SUCCESS;
}

CUresult query(CUstream handle, bool per_thread) {
  CUresult error;
  stream* s = find_stream(handle, per_thread, &error);
  if (!s) return error;
  if (CUresult result = refuse_in_capture(nullptr, s)) return result;
  return idle(s) ? CUDA_SUCCESS : CUDA_ERROR_NOT_READY;
}

template <class F>
CUresult with_stream(CUstream handle, bool per_thread, F use) {
  CUresult error;
  stream* s = find_stream(handle, per_thread, &error);
  return s ? use(s) : error;
}

template <class T, class V>
CUresult put(T* out, V value) {
  if (!out) return CUDA_ERROR_INVALID_VALUE;
  *out = static_cast<T>(value);
  return CUDA_SUCCESS;
}

CUresult add_host_function(CUstream handle, bool per_thread, std::function<void()> run) {
  return with_stream(handle, per_thread, [&](stream* s) {
    work item;
    item.run = host_function(std::move(run));
    item.by_worker = true;
    return enqueue(s, CU_GRAPH_NODE_TYPE_HOST, std::move(item));
  });
}

CUresult launch_host(CUstream handle, bool per_thread, CUhostFn fn, void* user) {
  if (!fn) return CUDA_ERROR_INVALID_VALUE;
  return add_host_function(handle, per_thread, [fn, user] { fn(user); });
}

CUresult add_callback(CUstream handle, bool per_thread, CUstreamCallback fn, void* user) {
  if (!fn) return CUDA_ERROR_INVALID_VALUE;
  return add_host_function(handle, per_thread,
                           [fn, user, handle] { fn(handle, CUDA_SUCCESS, user); });
}

template <class T>
CUresult write_value(CUstream handle, bool per_thread, CUdeviceptr address, T value) {
  return with_stream(handle, per_thread, [&](stream* s) {
    work item;
    item.run = [address, value] {
      __atomic_store_n(reinterpret_cast<T*>(address), value, __ATOMIC_RELEASE);
    };
    return enqueue(s, CU_GRAPH_NODE_TYPE_BATCH_MEM_OP, std::move(item));
  });
}

template <class T>
bool holds(T now, T value, unsigned flags) {
  switch (flags & 3) {
    case CU_STREAM_WAIT_VALUE_GEQ:
      return static_cast<std::make_signed_t<T>>(now - value) >= 0;
    case CU_STREAM_WAIT_VALUE_EQ:
      return now == value;
    case CU_STREAM_WAIT_VALUE_AND:
      return (now & value) != 0;
    default:
      return ~(now | value) != 0;
  }
}

template <class T>
CUresult wait_value(CUstream handle, bool per_thread, CUdeviceptr address, T value,
                    unsigned flags) {
  return with_stream(handle, per_thread, [&](stream* s) {
    work item;
    item.ready = [address, value, flags] {
      return holds(__atomic_load_n(reinterpret_cast<T*>(address), __ATOMIC_ACQUIRE), value, flags);
    };
    if (item.ready()) item.ready = nullptr;
    return enqueue(s, CU_GRAPH_NODE_TYPE_BATCH_MEM_OP, std::move(item));
  });
}

CUresult batch(CUstream handle, bool per_thread, unsigned count, CUstreamBatchMemOpParams* ops) {
  for (unsigned i = 0; i < count; ++i) {
    const CUstreamBatchMemOpParams& op = ops[i];
    CUresult result = CUDA_SUCCESS;
    if (op.operation == CU_STREAM_MEM_OP_WAIT_VALUE_32)
      result = wait_value<uint32_t>(handle, per_thread, op.waitValue.address, op.waitValue.value,
                                    op.waitValue.flags);
    else if (op.operation == CU_STREAM_MEM_OP_WAIT_VALUE_64)
      result = wait_value<uint64_t>(handle, per_thread, op.waitValue.address, op.waitValue.value64,
                                    op.waitValue.flags);
    else if (op.operation == CU_STREAM_MEM_OP_WRITE_VALUE_32)
      result =
          write_value<uint32_t>(handle, per_thread, op.writeValue.address, op.writeValue.value);
    else if (op.operation == CU_STREAM_MEM_OP_WRITE_VALUE_64)
      result =
          write_value<uint64_t>(handle, per_thread, op.writeValue.address, op.writeValue.value64);
    if (result) return result;
  }
  return CUDA_SUCCESS;
}

}  // namespace
}  // namespace hostwait::sim

using namespace hostwait::sim;

SIM_API(cuStreamCreate, (CUstream * out, unsigned flags), create(out, flags, 0))
SIM_API(cuStreamCreateWithPriority, (CUstream * out, unsigned flags, int priority),
        create(out, flags, priority))
SIM_API(cuStreamDestroy, (CUstream s), destroy(s))
SIM_API(cuStreamDestroy_v2, (CUstream s), destroy(s))
SIM_API_PTSZ(cuStreamSynchronize, (CUstream s), synchronize(s, per_thread))
SIM_API_PTSZ(cuStreamQuery, (CUstream s), query(s, per_thread))
SIM_API_PTSZ(cuStreamGetPriority, (CUstream s, int* out),
             with_stream(s, per_thread, [&](stream* f) { return put(out, f->priority); }))
SIM_API_PTSZ(cuStreamGetId, (CUstream s, unsigned long long* out),
             with_stream(s, per_thread, [&](stream* f) { return put(out, f->unique_id); }))
SIM_API_PTSZ(cuStreamGetFlags, (CUstream s, unsigned* out),
             with_stream(s, per_thread, [&](stream* f) { return put(out, f->flags); }))
SIM_API_PTSZ(cuStreamGetDevice, (CUstream s, CUdevice* out),
             with_stream(s, per_thread, [&](stream* f) { return put(out, f->ctx->device); }))
SIM_API_PTSZ(cuStreamGetCtx, (CUstream s, CUcontext* out),
             with_stream(s, per_thread, [&](stream* f) { return put(out, handle_of(f->ctx)); }))
SIM_API_PTSZ(cuStreamGetCtx_v2, (CUstream s, CUcontext* out, CUgreenCtx* green),
             with_stream(s, per_thread, [&](stream* f) {
               if (green) *green = nullptr;
               return put(out, handle_of(f->ctx));
             }))
SIM_API_PTSZ(cuStreamAttachMemAsync, (CUstream s, CUdeviceptr, size_t, unsigned),
             with_stream(s, per_thread, [&](stream*) { return CUDA_SUCCESS; }))
SIM_API_PTSZ(cuStreamAddCallback, (CUstream s, CUstreamCallback fn, void* user, unsigned),
             add_callback(s, per_thread, fn, user))
SIM_API_PTSZ(cuLaunchHostFunc, (CUstream s, CUhostFn fn, void* user),
             launch_host(s, per_thread, fn, user))
#define SIM_VALUE_OPS(suffix)                                                                     \
  SIM_API_PTSZ(cuStreamWriteValue32##suffix, (CUstream s, CUdeviceptr a, cuuint32_t v, unsigned), \
               write_value<uint32_t>(s, per_thread, a, v))                                        \
  SIM_API_PTSZ(cuStreamWriteValue64##suffix, (CUstream s, CUdeviceptr a, cuuint64_t v, unsigned), \
               write_value<uint64_t>(s, per_thread, a, v))                                        \
  SIM_API_PTSZ(cuStreamWaitValue32##suffix,                                                       \
               (CUstream s, CUdeviceptr a, cuuint32_t v, unsigned flags),                         \
               wait_value<uint32_t>(s, per_thread, a, v, flags))                                  \
  SIM_API_PTSZ(cuStreamWaitValue64##suffix,                                                       \
               (CUstream s, CUdeviceptr a, cuuint64_t v, unsigned flags),                         \
               wait_value<uint64_t>(s, per_thread, a, v, flags))                                  \
  SIM_API_PTSZ(cuStreamBatchMemOp##suffix,                                                        \
               (CUstream s, unsigned count, CUstreamBatchMemOpParams* ops, unsigned),             \
               batch(s, per_thread, count, ops))
SIM_VALUE_OPS()
SIM_VALUE_OPS(_v2)
