// SPDX-License-Identifier: Apache-2.0
// Copyright The hostwait authors
// What the simulated driver is made of: devices, contexts, streams with their queues, threads.
#pragma once

#include <condition_variable>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <vector>

#include "driver.hpp"

namespace hostwait::sim {

struct stream;
struct context;
struct capture;
struct graph_node;

using lock = std::unique_lock<std::mutex>;

// One lock and one condition for all queues: a simulator needs to be right, not to scale.
// Never destroyed: worker threads outlive main.
struct queues {
  std::mutex mutex;
  std::condition_variable changed;
  int waiting_threads = 0;
  std::vector<stream*> all_streams;
};
queues& q();

// A point in a stream's order: reached when the stream has completed that many pieces of work.
struct point {
  stream* on;
  uint64_t number;
  bool reached() const;
};

struct work {
  std::function<void()> run;    // done in stream order, without the lock; may be empty
  std::function<bool()> ready;  // polled before it starts (memory waits); may be empty
  std::shared_ptr<bool> gate;   // holds: set to true by the release
  std::vector<point> after;     // besides the stream's own order
  uint64_t busy_ns = 0;         // keeps the stream busy that long before `run`
  size_t staged_bytes = 0;      // pageable bytes that travel in the queue
  bool staging_buffer = false;  // uses one of the two staging buffers
  unsigned slots_wanted = 1;    // free queue entries it needs to be accepted
  bool by_worker = false;       // never done by the submitting thread
  uint64_t number = 0;
};

enum class stream_kind : uint8_t { legacy, blocking, non_blocking, per_thread };

// Never freed: a stale handle is answered with an error, and waiters may look at it at any time.
struct stream {
  static constexpr uint32_t right_magic = 0x48535354;
  uint32_t magic = right_magic;
  stream_kind kind;
  context* ctx;
  unsigned flags;
  int priority;
  uint64_t unique_id;
  std::atomic<bool> alive{true};
  std::atomic<uint64_t> submitted{0}, completed{0};
  std::deque<work> queue;  // the head may be running
  bool has_worker = false;
  size_t staged_bytes = 0;
  unsigned staging_buffers = 0;
  capture* capturing = nullptr;
  std::vector<graph_node*> capture_tail;
  bool ordered() const { return kind != stream_kind::non_blocking; }
};

struct context {
  static constexpr uint32_t right_magic = 0x48534358;
  uint32_t magic = right_magic;
  int device;
  bool primary;
  unsigned flags = 0;
  uint64_t unique_id;
  std::atomic<bool> alive{true};
  stream* legacy = nullptr;
  std::vector<stream*> streams;              // all of them, the legacy one first
  std::atomic<uint64_t> pending{0};          // work not yet completed, all streams
  int holders = 0;                           // threads in wait_and_hold
  std::atomic<uint64_t> ordered_pending{0};  // the same, legacy and blocking streams only
  size_t limits[16];
  size_t local_bytes = 16384;  // local memory per thread that is there already
  int cache_config = 0;
  uint64_t peers = 0;  // bit per device with enabled access
};

struct device {
  context* primary = nullptr;
  unsigned primary_references = 0;
  unsigned primary_flags = 0;
  CUmemoryPool default_pool = nullptr, current_pool = nullptr;
  std::atomic<size_t> used_bytes{0};
};
inline constexpr int max_devices = 8;
extern device devices[max_devices];
int device_count();
inline bool device_valid(CUdevice number) {
  return number >= 0 && number < device_count();
}

struct thread_state {
  std::vector<context*> stack;
  std::vector<stream*> streams;  // this thread's own stream of each context
  CUstreamCaptureMode capture_mode = CU_STREAM_CAPTURE_MODE_GLOBAL;
  ~thread_state();
};
thread_state& self();
context* current_context();  // null when none is current

context* make_context(int device, bool primary, unsigned flags);
void destroy_context(context* ctx);    // waits for everything in it
context* primary_context(int device);  // made on first use

stream* make_stream(context* ctx, stream_kind kind, unsigned flags, int priority);
// The stream behind a handle, or null; `context` receives the error to return then.
stream* find_stream(CUstream handle, bool per_thread, CUresult* error);

// Adds work in stream order, waiting for room in the queue; returns its point. The lock is held
// at the call and at the return, and released meanwhile when there is no room.
point submit(lock& held, stream* on, work&& item);
// Stops the calling host thread until `done`; counted when it has to wait at all.
void host_wait(lock& held, const std::function<bool()>& done);
// What a host wait on this stream waits for: legacy includes the blocking streams.
std::vector<point> tail_of(stream* on);
bool idle(const stream* on);  // cheap, without the lock
void wait_for(lock& held, const std::vector<point>& points);
void wait_for_context(context* ctx);  // every stream of it
// The same, and holds meanwhile the calls of other threads that add work or allocate.
void wait_and_hold(context* ctx);
void wait_for_holders(lock& held, context* ctx);
uint64_t now_ns();

// Objects behind handles are never freed, so that a stale handle can be answered with an error;
// kept in a list, they are no leak to a leak checker either.
void keep_object(void* object);
template <class T>
T* kept(T* object) {
  keep_object(object);
  return object;
}
// The user's function as stream work: inside it the driver refuses calls.
std::function<void()> host_function(std::function<void()> users);

inline CUstream handle_of(stream* s) {
  return reinterpret_cast<CUstream>(s);
}
inline CUcontext handle_of(context* c) {
  return reinterpret_cast<CUcontext>(c);
}
context* find_context(CUcontext handle);

}  // namespace hostwait::sim
