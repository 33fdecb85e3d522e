// SPDX-License-Identifier: Apache-2.0
// Copyright The hostwait authors
// Events: record, wait, query, elapsed time, and events recorded in a capture.
#include "capture.hpp"

namespace hostwait::sim {

event* find_event(CUevent handle) {
  auto* e = reinterpret_cast<event*>(handle);
  return e && e->magic == event::right_magic && e->alive ? e : nullptr;
}

namespace {

CUresult create(CUevent* out, unsigned flags) {
  context* ctx = current_context();
  if (!ctx) return CUDA_ERROR_INVALID_CONTEXT;
  constexpr unsigned known =
      CU_EVENT_BLOCKING_SYNC | CU_EVENT_DISABLE_TIMING | CU_EVENT_INTERPROCESS;
  if (!out || flags & ~known) return CUDA_ERROR_INVALID_VALUE;
  auto* e = kept(new event);
  e->flags = flags;
  e->ctx = ctx;
  *out = reinterpret_cast<CUevent>(e);
  return CUDA_SUCCESS;
}

CUresult destroy(CUevent handle) {
  event* e = find_event(handle);
  if (!e) return CUDA_ERROR_INVALID_HANDLE;
  e->alive = false;
  return CUDA_SUCCESS;
}

CUresult record(CUevent handle, CUstream on, bool per_thread) {
  event* e = find_event(handle);
  if (!e) return CUDA_ERROR_INVALID_HANDLE;
  CUresult error;
  stream* s = find_stream(on, per_thread, &error);
  if (!s) return error;
  lock held(q().mutex);
  if (s->capturing) {
    if (s->capturing->invalidated) return CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
    e->captured_by = s->capturing;
    e->captured_tail = s->capture_tail;
    return CUDA_SUCCESS;
  }
  auto stamp = std::make_shared<std::atomic<uint64_t>>(0);
  work item;
  item.run = [stamp] { *stamp = now_ns(); };
  point where;
  if (CUresult result =
          enqueue_locked(held, s, CU_GRAPH_NODE_TYPE_EVENT_RECORD, std::move(item), &where))
    return result;
  e->captured_by = nullptr;
  e->recorded = true;
  e->last = where;
  e->stamp = std::move(stamp);
  return CUDA_SUCCESS;
}

// Joins the stream to the capture, or orders it behind the captured work.
CUresult wait_captured(event* e, stream* s) {
  capture* c = find_capture(e->captured_by);
  if (!c) return CUDA_ERROR_INVALID_VALUE;
  if (s->kind == stream_kind::legacy) {
    invalidate(c);
    return CUDA_ERROR_STREAM_CAPTURE_IMPLICIT;
  }
  if (s->capturing && s->capturing != c) {
    invalidate(c);
    invalidate(s->capturing);
    return CUDA_ERROR_STREAM_CAPTURE_MERGE;
  }
  if (!s->capturing) {
    s->capturing = c;
    s->capture_tail.clear();
    c->joined.push_back(s);
  }
  for (graph_node* node : e->captured_tail) s->capture_tail.push_back(node);
  return CUDA_SUCCESS;
}

CUresult stream_wait(CUstream on, bool per_thread, CUevent handle) {
  event* e = find_event(handle);
  if (!e) return CUDA_ERROR_INVALID_HANDLE;
  CUresult error;
  stream* s = find_stream(on, per_thread, &error);
  if (!s) return error;
  lock held(q().mutex);
  if (e->captured_by) return wait_captured(e, s);
  if (s->capturing) {
    // Only an external event may be waited for inside a capture.
    invalidate(s->capturing);
    return CUDA_ERROR_STREAM_CAPTURE_ISOLATION;
  }
  if (!e->recorded || e->last.reached()) return CUDA_SUCCESS;
  work item;
  item.after.push_back(e->last);
  return enqueue_locked(held, s, CU_GRAPH_NODE_TYPE_WAIT_EVENT, std::move(item), nullptr);
}

// With the lock held: may the host ask about this event at all?
CUresult refuse_captured(const event* e) {
  if (!e->captured_by) return CUDA_SUCCESS;
  if (capture* c = find_capture(e->captured_by)) invalidate(c);
  return CUDA_ERROR_CAPTURED_EVENT;
}

CUresult query(CUevent handle) {
  event* e = find_event(handle);
  if (!e) return CUDA_ERROR_INVALID_HANDLE;
  if (CUresult result = refuse_in_capture(nullptr, nullptr)) return result;
  lock held(q().mutex);
  if (CUresult result = refuse_captured(e)) return result;
  return !e->recorded || e->last.reached() ? CUDA_SUCCESS : CUDA_ERROR_NOT_READY;
}

CUresult synchronize(CUevent handle) {
  event* e = find_event(handle);
  if (!e) return CUDA_ERROR_INVALID_HANDLE;
  if (CUresult result = refuse_in_capture(nullptr, nullptr)) return result;
  lock held(q().mutex);
  if (CUresult result = refuse_captured(e)) return result;
  if (e->recorded) wait_for(held, {e->last});
  return CUDA_SUCCESS;
}

CUresult elapsed(float* out, CUevent first, CUevent second) {
  event* a = find_event(first);
  event* b = find_event(second);
  if (!a || !b) return CUDA_ERROR_INVALID_HANDLE;
  if (!out) return CUDA_ERROR_INVALID_VALUE;
  lock held(q().mutex);
  if (!a->recorded || !b->recorded || (a->flags | b->flags) & CU_EVENT_DISABLE_TIMING)
    return CUDA_ERROR_INVALID_HANDLE;
  if (!a->last.reached() || !b->last.reached()) return CUDA_ERROR_NOT_READY;
  *out = static_cast<float>(static_cast<double>(static_cast<int64_t>(*b->stamp - *a->stamp)) / 1e6);
  return CUDA_SUCCESS;
}

// Over all streams of a context: the record is reached when all of them have come this far.
CUresult record_context(CUcontext handle, CUevent event_handle) {
  context* ctx = find_context(handle);
  event* e = find_event(event_handle);
  if (!ctx) return CUDA_ERROR_INVALID_CONTEXT;
  if (!e) return CUDA_ERROR_INVALID_HANDLE;
  stream* joiner = make_stream(ctx, stream_kind::non_blocking, CU_STREAM_NON_BLOCKING, 0);
  lock held(q().mutex);
  auto stamp = std::make_shared<std::atomic<uint64_t>>(0);
  work item;
  item.run = [stamp] { *stamp = now_ns(); };
  for (stream* s : ctx->streams)
    if (s != joiner) item.after.push_back({s, s->submitted});
  e->last = submit(held, joiner, std::move(item));
  e->captured_by = nullptr;
  e->recorded = true;
  e->stamp = std::move(stamp);
  joiner->alive = false;
  return CUDA_SUCCESS;
}

CUresult context_wait(CUcontext handle, CUevent event_handle) {
  context* ctx = find_context(handle);
  event* e = find_event(event_handle);
  if (!ctx) return CUDA_ERROR_INVALID_CONTEXT;
  if (!e) return CUDA_ERROR_INVALID_HANDLE;
  lock held(q().mutex);
  if (!e->recorded || e->last.reached()) return CUDA_SUCCESS;
  std::vector<stream*> streams = ctx->streams;
  for (stream* s : streams) {
    work item;
    item.after.push_back(e->last);
    submit(held, s, std::move(item));
  }
  return CUDA_SUCCESS;
}

}  // namespace
}  // namespace hostwait::sim

using namespace hostwait::sim;

SIM_API(cuEventCreate, (CUevent * out, unsigned flags), create(out, flags))
SIM_API(cuEventDestroy, (CUevent e), destroy(e))
SIM_API(cuEventDestroy_v2, (CUevent e), destroy(e))
SIM_API_PTSZ(cuEventRecord, (CUevent e, CUstream s), record(e, s, per_thread))
SIM_API_PTSZ(cuEventRecordWithFlags, (CUevent e, CUstream s, unsigned), record(e, s, per_thread))
SIM_API_PTSZ(cuStreamWaitEvent, (CUstream s, CUevent e, unsigned), stream_wait(s, per_thread, e))
SIM_API(cuEventQuery, (CUevent e), query(e))
SIM_API(cuEventSynchronize, (CUevent e), synchronize(e))
SIM_API(cuEventElapsedTime, (float* out, CUevent a, CUevent b), elapsed(out, a, b))
SIM_API(cuEventElapsedTime_v2, (float* out, CUevent a, CUevent b), elapsed(out, a, b))
SIM_API(cuCtxRecordEvent, (CUcontext ctx, CUevent e), record_context(ctx, e))
SIM_API(cuCtxWaitEvent, (CUcontext ctx, CUevent e), context_wait(ctx, e))
