// SPDX-License-Identifier: Apache-2.0
// Copyright The hostwait authors
// Graphs, open captures, and the one way by which stream work becomes queued or captured.
#pragma once

#include <pthread.h>

#include "state.hpp"

namespace hostwait::sim {

struct graph;

struct graph_node {
  static constexpr uint32_t right_magic = 0x4853474e;
  uint32_t magic = right_magic;
  CUgraphNodeType type;
  graph* owner;
  work item;                       // run, busy_ns, by_worker, ready are used
  std::vector<graph_node*> after;  // its dependencies
  graph* child = nullptr;
};

struct graph {
  static constexpr uint32_t right_magic = 0x48534752;
  uint32_t magic = right_magic;
  std::vector<std::unique_ptr<graph_node>> nodes;
};

struct capture {
  uint64_t unique_id;
  graph* into;
  CUstreamCaptureMode mode;
  pthread_t owner;
  context* ctx;
  stream* origin;
  std::vector<stream*> joined;  // the origin first
  bool invalidated = false;
};

struct event {
  static constexpr uint32_t right_magic = 0x48534556;
  uint32_t magic = right_magic;
  std::atomic<bool> alive{true};
  unsigned flags;
  context* ctx;
  bool recorded = false;
  point last{};
  std::shared_ptr<std::atomic<uint64_t>> stamp;  // when the last record was reached, in ns
  capture* captured_by = nullptr;
  std::vector<graph_node*> captured_tail;
};
event* find_event(CUevent handle);

extern std::atomic<int> open_captures;

// For calls that may not be made while a capture is open: waits, queries, allocation, loading.
// Returns an error and invalidates what the call would have disturbed. `whole` is given by calls
// that cover every stream of a context, `on` by calls on one stream; both may be null.
CUresult refuse_in_capture_slow(context* whole, stream* on);
inline CUresult refuse_in_capture(context* whole, stream* on) {
  return open_captures.load(std::memory_order_relaxed) ? refuse_in_capture_slow(whole, on)
                                                       : CUDA_SUCCESS;
}

// For copies and memsets that wait for their own work: measured, they break no capture but that of
// their own stream, and by the legacy stream's order those of blocking streams.
CUresult refuse_wait_for_work(stream* on);

// Queues the work, or adds a node of that type where the stream is being captured.
CUresult enqueue(stream* on, CUgraphNodeType type, work&& item, point* where = nullptr);
// The same with the lock held.
CUresult enqueue_locked(lock& held, stream* on, CUgraphNodeType type, work&& item, point* where);

graph_node* add_node(graph* to, CUgraphNodeType type, work&& item, std::vector<graph_node*> after);
void invalidate(capture* which);
capture* find_capture(const capture* which);  // null when it has ended; the lock is held

}  // namespace hostwait::sim
