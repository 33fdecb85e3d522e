// SPDX-License-Identifier: Apache-2.0
// Copyright The hostwait authors
// What a thread keeps: cached events per context and its counters. Owned by a registry that is
// never destroyed, so that neither thread exit nor process exit calls into a driver that may be
// gone; a state is handed on to the next new thread, events included.
#pragma once

#include <pthread.h>

#include <atomic>

#include "driver.hpp"

namespace hostwait::cai {

// One a line.
// clang-format off
#define HOSTWAIT_CAI_COUNTERS(X) \
  X(acquires) \
  X(elided) \
  X(ready_now) \
  X(waits) \
  X(back_edges) \
  X(event_waits) \
  X(host_waits) \
  X(polls) \
  X(opt_outs) \
  X(opt_outs_pending) \
  X(legacy_producer_current) \
  X(legacy_via_dlpack) \
  X(legacy_join) \
  X(legacy_device) \
  X(legacy_none) \
  X(capture_refused) \
  X(capture_assumed) \
  X(back_edges_skipped) \
  X(events_created) \
  X(retired) \
  X(drained)
// clang-format on

struct counters {
#define HOSTWAIT_CAI_MEMBER(name) std::atomic<uint64_t> name;
  HOSTWAIT_CAI_COUNTERS(HOSTWAIT_CAI_MEMBER)
#undef HOSTWAIT_CAI_MEMBER
};

// Events of one context. Each serves every record-and-wait of its kind on this thread, since a wait
// binds to the latest record at its call (R27). `there` is recorded on producers' streams and
// `back` on consumers', so that in a steady exchange neither goes from stream to stream; `capture`
// is recorded in captures only, where an event belongs to the graph.
enum class edge_kind : uint8_t { there, back, capture };
constexpr size_t edge_kinds = 3;
struct event_slot {
  uint64_t context, context_id;
  void* events[edge_kinds];
};

// The context that a stream handle had when it was last asked for.
struct known_stream {
  uint64_t stream, context;
};
constexpr uint32_t known_streams = 8;

struct session;

struct thread_state {
  uint32_t number;  // from 1; unique among living threads
  uint32_t slot_count, slot_room;
  event_slot* slots;
  event_slot first_slots[4];
  known_stream known[known_streams];
  uint32_t next_known;
  counters count;
  thread_state* next;       // of all states
  thread_state* next_free;  // of those without a thread
};

// NULL before the thread's first call. Initial-exec: no call is made to find it; it takes 8 bytes
// of what the loader keeps for libraries that are loaded later.
extern constinit thread_local thread_state* own_state __attribute__((tls_model("initial-exec")));
thread_state* first_state();

// The calling thread's state; NULL only without memory.
inline thread_state* this_thread() {
  return __builtin_expect(own_state != nullptr, 1) ? own_state : first_state();
}

// Adds to a counter of the calling thread: one writer, so no atomic addition is needed.
inline void add(std::atomic<uint64_t>& counter, uint64_t n = 1) {
  counter.store(counter.load(std::memory_order_relaxed) + n, std::memory_order_relaxed);
}

// Creates events for `context` in `known`, whose former context at that address is gone, or in a
// slot of its own where `known` is NULL.
int fill_slot(const session& s, uint64_t context, uint64_t id, event_slot* known,
              const event_slot** out);

// Events that are polled or waited for by the host: taken from and given back to a pool per
// context. `context` must be current for take_event.
int take_event(thread_state* thread, const hostwait_cai_driver& driver, uint64_t context,
               const error_sink& sink, uint64_t* event);
void give_event(const hostwait_cai_driver& driver, uint64_t context, uint64_t event);

// A number that differs between a context and a later one at the same address; 0 for drivers
// without.
inline uint64_t context_id(const hostwait_cai_driver& driver, uint64_t context) {
  unsigned long long id = 0;
  if (driver.ctx_get_id == nullptr) return 0;
  return driver.ctx_get_id(handle(context), &id) == cu_success ? id : 0;
}

// Retained once per device and never released.
int primary_context(const hostwait_cai_driver& driver, int device, uint64_t* context);

// For set_driver: no driver call.
void forget_everything();
void forget_retired();

}  // namespace hostwait::cai
