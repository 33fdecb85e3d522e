// SPDX-License-Identifier: Apache-2.0
// Copyright The hostwait authors
// Stream capture: begin, end, modes, what it forbids, and capturing of stream work.
#include "capture.hpp"

#include <algorithm>

namespace hostwait::sim {

std::atomic<int> open_captures{0};

namespace {

std::atomic<uint64_t> next_capture_id{1};
std::vector<capture*>& captures() {
  static auto* const list = new std::vector<capture*>;
  return *list;
}

bool captures_blocking_stream(const capture* c) {
  return std::any_of(c->joined.begin(), c->joined.end(),
                     [](const stream* s) { return s->ordered(); });
}

// Legacy work would depend on the captured blocking streams.
CUresult refuse_implicit(const stream* on) {
  if (on->kind != stream_kind::legacy) return CUDA_SUCCESS;
  CUresult result = CUDA_SUCCESS;
  for (capture* c : captures()) {
    if (c->ctx != on->ctx || !captures_blocking_stream(c)) continue;
    c->invalidated = true;
    result = CUDA_ERROR_STREAM_CAPTURE_IMPLICIT;
  }
  return result;
}

}  // namespace

void invalidate(capture* which) {
  which->invalidated = true;
}

capture* find_capture(const capture* which) {
  for (capture* c : captures())
    if (c == which) return c;
  return nullptr;
}

CUresult refuse_in_capture_slow(context* whole, stream* on) {
  lock held(q().mutex);
  if (on && on->capturing) {
    on->capturing->invalidated = true;
    return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
  }
  if (on)
    if (CUresult result = refuse_implicit(on)) return result;
  CUresult result = CUDA_SUCCESS;
  CUstreamCaptureMode mine = self().capture_mode;
  for (capture* c : captures()) {
    bool own = pthread_equal(c->owner, pthread_self());
    bool covered = whole && c->ctx == whole;
    bool unsafe =
        mine != CU_STREAM_CAPTURE_MODE_RELAXED &&
        (own ? c->mode != CU_STREAM_CAPTURE_MODE_RELAXED
             : c->mode == CU_STREAM_CAPTURE_MODE_GLOBAL && mine == CU_STREAM_CAPTURE_MODE_GLOBAL);
    if (!covered && !unsafe) continue;
    c->invalidated = true;
    result = CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
  }
  return result;
}

CUresult refuse_wait_for_work(stream* on) {
  lock held(q().mutex);
  if (!on->capturing) return CUDA_SUCCESS;
  on->capturing->invalidated = true;
  return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
}

graph_node* add_node(graph* to, CUgraphNodeType type, work&& item, std::vector<graph_node*> after) {
  auto node = std::make_unique<graph_node>();
  node->type = type;
  node->owner = to;
  node->item = std::move(item);
  node->after = std::move(after);
  to->nodes.push_back(std::move(node));
  return to->nodes.back().get();
}

CUresult enqueue_locked(lock& held, stream* on, CUgraphNodeType type, work&& item, point* where) {
  if (on->capturing) {
    if (on->capturing->invalidated) return CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
    on->capture_tail = {add_node(on->capturing->into, type, std::move(item), on->capture_tail)};
    return CUDA_SUCCESS;
  }
  if (open_captures)
    if (CUresult result = refuse_implicit(on)) return result;
  wait_for_holders(held, on->ctx);
  point reached = submit(held, on, std::move(item));
  if (where) *where = reached;
  return CUDA_SUCCESS;
}

CUresult enqueue(stream* on, CUgraphNodeType type, work&& item, point* where) {
  lock held(q().mutex);
  return enqueue_locked(held, on, type, std::move(item), where);
}

namespace {

CUresult begin(CUstream handle, bool per_thread, CUstreamCaptureMode mode, graph* into) {
  CUresult error;
  stream* s = find_stream(handle, per_thread, &error);
  if (!s) return error;
  if (s->kind == stream_kind::legacy) return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
  if (mode > CU_STREAM_CAPTURE_MODE_RELAXED) return CUDA_ERROR_INVALID_VALUE;
  lock held(q().mutex);
  if (s->capturing) return CUDA_ERROR_ILLEGAL_STATE;
  auto* c = new capture{
      next_capture_id++, into ? into : kept(new graph), mode, pthread_self(), s->ctx, s, {s}};
  s->capturing = c;
  s->capture_tail.clear();
  captures().push_back(c);
  ++open_captures;
  return CUDA_SUCCESS;
}

// Every joined stream must have been brought back to the origin: its tail is among the
// dependencies that lead to the origin's tail.
bool all_joined(const capture* c) {
  std::vector<graph_node*> seen = c->origin->capture_tail;
  for (size_t i = 0; i < seen.size(); ++i)
    for (graph_node* before : seen[i]->after)
      if (std::find(seen.begin(), seen.end(), before) == seen.end()) seen.push_back(before);
  for (const stream* s : c->joined)
    for (graph_node* tail : s->capture_tail)
      if (std::find(seen.begin(), seen.end(), tail) == seen.end()) return false;
  return true;
}

CUresult end(CUstream handle, bool per_thread, CUgraph* out) {
  CUresult error;
  stream* s = find_stream(handle, per_thread, &error);
  if (!s) return error;
  if (!out) return CUDA_ERROR_INVALID_VALUE;
  *out = nullptr;
  lock held(q().mutex);
  capture* c = s->capturing;
  if (!c) return CUDA_ERROR_ILLEGAL_STATE;
  if (s != c->origin) return CUDA_ERROR_STREAM_CAPTURE_UNMATCHED;
  if (c->mode != CU_STREAM_CAPTURE_MODE_RELAXED && !pthread_equal(c->owner, pthread_self()))
    return CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD;
  CUresult result = c->invalidated   ? CUDA_ERROR_STREAM_CAPTURE_INVALIDATED
                    : !all_joined(c) ? CUDA_ERROR_STREAM_CAPTURE_UNJOINED
                                     : CUDA_SUCCESS;
  for (stream* joined : c->joined) {
    joined->capturing = nullptr;
    joined->capture_tail.clear();
  }
  captures().erase(std::find(captures().begin(), captures().end(), c));
  --open_captures;
  if (!result) *out = reinterpret_cast<CUgraph>(c->into);
  delete c;
  return result;
}

struct info_out {
  CUstreamCaptureStatus* status;
  cuuint64_t* id = nullptr;
  CUgraph* graph_out = nullptr;
  const CUgraphNode** nodes = nullptr;
  const CUgraphEdgeData** edges = nullptr;
  size_t* count = nullptr;
};

// An implicit-dependency error is the answer for the legacy stream while a blocking one is
// captured; unlike work, the question itself invalidates nothing.
CUresult info(CUstream handle, bool per_thread, info_out out) {
  CUresult error;
  stream* s = find_stream(handle, per_thread, &error);
  if (!s) return error;
  if (!out.status) return CUDA_ERROR_INVALID_VALUE;
  lock held(q().mutex);
  if (s->kind == stream_kind::legacy)
    for (capture* c : captures())
      if (c->ctx == s->ctx && captures_blocking_stream(c))
        return CUDA_ERROR_STREAM_CAPTURE_IMPLICIT;
  capture* c = s->capturing;
  *out.status = !c               ? CU_STREAM_CAPTURE_STATUS_NONE
                : c->invalidated ? CU_STREAM_CAPTURE_STATUS_INVALIDATED
                                 : CU_STREAM_CAPTURE_STATUS_ACTIVE;
  if (!c || c->invalidated) return CUDA_SUCCESS;
  if (out.id) *out.id = c->unique_id;
  if (out.graph_out) *out.graph_out = reinterpret_cast<CUgraph>(c->into);
  if (out.nodes) *out.nodes = reinterpret_cast<const CUgraphNode*>(s->capture_tail.data());
  if (out.edges) *out.edges = nullptr;
  if (out.count) *out.count = s->capture_tail.size();
  return CUDA_SUCCESS;
}

CUresult update_dependencies(CUstream handle, bool per_thread, CUgraphNode* nodes, size_t count,
                             unsigned flags) {
  CUresult error;
  stream* s = find_stream(handle, per_thread, &error);
  if (!s) return error;
  lock held(q().mutex);
  if (!s->capturing) return CUDA_ERROR_ILLEGAL_STATE;
  if (flags == CU_STREAM_SET_CAPTURE_DEPENDENCIES) s->capture_tail.clear();
  for (size_t i = 0; i < count; ++i)
    s->capture_tail.push_back(reinterpret_cast<graph_node*>(nodes[i]));
  return CUDA_SUCCESS;
}

CUresult exchange_mode(CUstreamCaptureMode* mode) {
  if (!mode || *mode > CU_STREAM_CAPTURE_MODE_RELAXED) return CUDA_ERROR_INVALID_VALUE;
  std::swap(*mode, self().capture_mode);
  return CUDA_SUCCESS;
}

}  // namespace
}  // namespace hostwait::sim

using namespace hostwait::sim;

SIM_API_PTSZ(cuStreamBeginCapture, (CUstream s),
             begin(s, per_thread, CU_STREAM_CAPTURE_MODE_GLOBAL, nullptr))
SIM_API_PTSZ(cuStreamBeginCapture_v2, (CUstream s, CUstreamCaptureMode mode),
             begin(s, per_thread, mode, nullptr))
SIM_API_PTSZ(cuStreamBeginCaptureToGraph,
             (CUstream s, CUgraph g, const CUgraphNode*, const CUgraphEdgeData*, size_t,
              CUstreamCaptureMode mode),
             begin(s, per_thread, mode, reinterpret_cast<graph*>(g)))
SIM_API_PTSZ(cuStreamEndCapture, (CUstream s, CUgraph* out), end(s, per_thread, out))
SIM_API_PTSZ(cuStreamIsCapturing, (CUstream s, CUstreamCaptureStatus* status),
             info(s, per_thread, {status}))
SIM_API_PTSZ(cuStreamGetCaptureInfo, (CUstream s, CUstreamCaptureStatus* status, cuuint64_t* id),
             info(s, per_thread, {status, id}))
SIM_API_PTSZ(cuStreamGetCaptureInfo_v2,
             (CUstream s, CUstreamCaptureStatus* status, cuuint64_t* id, CUgraph* g,
              const CUgraphNode** nodes, size_t* count),
             info(s, per_thread, {status, id, g, nodes, nullptr, count}))
SIM_API_PTSZ(cuStreamGetCaptureInfo_v3,
             (CUstream s, CUstreamCaptureStatus* status, cuuint64_t* id, CUgraph* g,
              const CUgraphNode** nodes, const CUgraphEdgeData** edges, size_t* count),
             info(s, per_thread, {status, id, g, nodes, edges, count}))
SIM_API_PTSZ(cuStreamUpdateCaptureDependencies,
             (CUstream s, CUgraphNode* nodes, size_t count, unsigned flags),
             update_dependencies(s, per_thread, nodes, count, flags))
SIM_API_PTSZ(cuStreamUpdateCaptureDependencies_v2,
             (CUstream s, CUgraphNode* nodes, const CUgraphEdgeData*, size_t count, unsigned flags),
             update_dependencies(s, per_thread, nodes, count, flags))
SIM_API(cuThreadExchangeStreamCaptureMode, (CUstreamCaptureMode * mode), exchange_mode(mode))
