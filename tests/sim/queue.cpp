// SPDX-License-Identifier: Apache-2.0
// Copyright The hostwait authors
// In-order queues: submission, implicit order with the legacy stream, worker threads, host waits.
#include <time.h>

#include <algorithm>
#include <chrono>
#include <thread>

#include "state.hpp"

namespace hostwait::sim {
namespace {

// Measured: the 1022nd launch behind one kernel waits, the 1021st small pageable copy does.
constexpr size_t queue_entries = 1022;
// Measured: 62 pageable copies of 64 KiB or 124 of 32 KiB fit into the queue, one more does not.
constexpr size_t queue_staged_bytes = 62 * 65536;
constexpr unsigned staging_buffers = 2;

bool all_reached(const std::vector<point>& points) {
  return std::all_of(points.begin(), points.end(), [](const point& p) { return p.reached(); });
}

bool has_room(const stream* s, const work& item) {
  return s->queue.size() + item.slots_wanted <= queue_entries &&
         s->staged_bytes + item.staged_bytes <= queue_staged_bytes &&
         s->staging_buffers + item.staging_buffer <= staging_buffers;
}

// Legacy work follows all earlier work of blocking streams, and theirs follows it.
void add_implicit_order(stream* on, work& item) {
  if (on->kind == stream_kind::non_blocking) return;
  if (on->kind != stream_kind::legacy) {
    stream* legacy = on->ctx->legacy;
    item.after.push_back({legacy, legacy->submitted});
    return;
  }
  for (stream* other : on->ctx->streams)
    if (other != on && other->ordered()) item.after.push_back({other, other->submitted});
}

void finish(stream* s, const work& item) {
  s->completed = item.number;
  s->staged_bytes -= item.staged_bytes;
  s->staging_buffers -= item.staging_buffer;
  --s->ctx->pending;
  if (s->ordered()) --s->ctx->ordered_pending;
}

bool may_start(const work& head) {
  return (!head.gate || *head.gate) && all_reached(head.after);
}

void sleep_ns(uint64_t ns) {
  std::this_thread::sleep_for(std::chrono::nanoseconds(ns));
}

void worker(stream* s) {
  lock held(q().mutex);
  for (;;) {
    q().changed.wait(held, [s] { return !s->queue.empty() && may_start(s->queue.front()); });
    // The entry stays in the queue while it runs: it occupies it. References into a deque
    // survive push_back.
    work& head = s->queue.front();
    held.unlock();
    while (head.ready && !head.ready()) sleep_ns(50'000);
    if (head.busy_ns) sleep_ns(head.busy_ns);
    if (head.run) head.run();
    held.lock();
    finish(s, head);
    work done = std::move(head);
    s->queue.pop_front();
    q().changed.notify_all();
    held.unlock();
    done = {};  // captured user data is destroyed without the lock
    held.lock();
  }
}

}  // namespace

queues& q() {
  static queues* const instance = new queues;
  return *instance;
}

bool point::reached() const {
  return on->completed.load(std::memory_order_acquire) >= number;
}

uint64_t now_ns() {
  timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return static_cast<uint64_t>(t.tv_sec) * 1'000'000'000u + static_cast<uint64_t>(t.tv_nsec);
}

void keep_object(void* object) {
  static auto* const mutex = new std::mutex;
  static auto* const objects = new std::vector<void*>;
  std::lock_guard guard(*mutex);
  objects->push_back(object);
}

std::function<void()> host_function(std::function<void()> users) {
  return [users = std::move(users)] {
    call.in_host_function = true;
    users();
    call.in_host_function = false;
  };
}

void host_wait(lock& held, const std::function<bool()>& done) {
  if (done()) return;
  call.shard->waits[static_cast<size_t>(call.current)].fetch_add(1, std::memory_order_relaxed);
  ++q().waiting_threads;
  q().changed.notify_all();
  q().changed.wait(held, done);
  --q().waiting_threads;
}

void wait_for(lock& held, const std::vector<point>& points) {
  host_wait(held, [&] { return all_reached(points); });
}

point submit(lock& held, stream* on, work&& item) {
  host_wait(held, [&] { return has_room(on, item); });
  add_implicit_order(on, item);
  item.number = ++on->submitted;
  bool at_once = on->queue.empty() && !item.by_worker && !item.gate && !item.ready &&
                 !item.busy_ns && all_reached(item.after);
  if (at_once) {
    if (item.run) item.run();
    on->completed = item.number;
    return {on, item.number};
  }
  on->staged_bytes += item.staged_bytes;
  on->staging_buffers += item.staging_buffer;
  ++on->ctx->pending;
  if (on->ordered()) ++on->ctx->ordered_pending;
  point result{on, item.number};
  on->queue.push_back(std::move(item));
  if (!on->has_worker) {
    on->has_worker = true;
    std::thread(worker, on).detach();
  }
  q().changed.notify_all();
  return result;
}

std::vector<point> tail_of(stream* on) {
  std::vector<point> points{{on, on->submitted}};
  if (on->kind == stream_kind::legacy)
    for (stream* other : on->ctx->streams)
      if (other->ordered()) points.push_back({other, other->submitted});
  return points;
}

bool idle(const stream* on) {
  if (on->kind == stream_kind::legacy) return on->ctx->ordered_pending == 0;
  return on->completed.load(std::memory_order_acquire) == on->submitted;
}

void wait_for_context(context* ctx) {
  if (ctx->pending == 0) return;
  lock held(q().mutex);
  std::vector<point> points;
  for (stream* s : ctx->streams) points.push_back({s, s->submitted});
  wait_for(held, points);
}

void wait_and_hold(context* ctx) {
  if (ctx->pending == 0) return;
  lock held(q().mutex);
  std::vector<point> points;
  for (stream* s : ctx->streams) points.push_back({s, s->submitted});
  ++ctx->holders;
  wait_for(held, points);
  --ctx->holders;
  q().changed.notify_all();
}

void wait_for_holders(lock& held, context* ctx) {
  if (ctx->holders != 0) host_wait(held, [ctx] { return ctx->holders == 0; });
}

}  // namespace hostwait::sim
