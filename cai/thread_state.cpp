// SPDX-License-Identifier: Apache-2.0
// Copyright The hostwait authors
// The registry of thread states, the event caches and the pool.
#include "thread_state.hpp"

#include "session.hpp"

#include <cstdlib>
#include <cstring>

namespace hostwait::cai {
namespace {

pthread_mutex_t registry = PTHREAD_MUTEX_INITIALIZER;
thread_state* all_states = nullptr;
thread_state* free_states = nullptr;
uint32_t last_number = 0;

pthread_key_t exit_key;
pthread_once_t exit_once = PTHREAD_ONCE_INIT;

// At thread exit: hand the state on, events and counters included. No driver call.
void give_back(void* state) {
  auto* s = static_cast<thread_state*>(state);
  own_state = nullptr;
  pthread_mutex_lock(&registry);
  s->next_free = free_states;
  free_states = s;
  pthread_mutex_unlock(&registry);
}

void before_fork() {
  pthread_mutex_lock(&registry);
}
void after_fork() {
  pthread_mutex_unlock(&registry);
}

void set_up() {
  pthread_key_create(&exit_key, give_back);
  pthread_atfork(before_fork, after_fork, after_fork);
}

struct pooled_event {
  uint64_t context, context_id;
  uint64_t event;
};
struct event_pool {
  pooled_event* items;
  size_t count, room;
};
event_pool pool{};  // under `registry`

constexpr int known_devices = 64;
std::atomic<uint64_t> primaries[known_devices];

int create(thread_state* thread, const hostwait_cai_driver& driver, unsigned flags, void** event,
           const error_sink& sink) {
  const relaxed_capture_mode relaxed(driver);
  const int result = driver.event_create(event, flags);
  if (result != cu_success) return driver_failure(sink, result, "cuEventCreate");
  add(thread->count.events_created);
  return HOSTWAIT_CAI_OK;
}

// The slot to be filled for a context without one; NULL without memory.
event_slot* free_slot(thread_state* thread) {
  if (thread->slot_count == thread->slot_room) {
    const uint32_t room = thread->slot_room * 2;
    auto* slots = static_cast<event_slot*>(calloc(room, sizeof(event_slot)));
    if (slots == nullptr) return nullptr;
    memcpy(slots, thread->slots, thread->slot_count * sizeof(event_slot));
    if (thread->slots != thread->first_slots) free(thread->slots);
    thread->slots = slots;
    thread->slot_room = room;
  }
  return &thread->slots[thread->slot_count++];
}

}  // namespace

constinit thread_local thread_state* own_state = nullptr;

thread_state* first_state() {
  pthread_once(&exit_once, set_up);
  pthread_mutex_lock(&registry);
  thread_state* s = free_states;
  if (s != nullptr) {
    free_states = s->next_free;
  } else {
    s = static_cast<thread_state*>(calloc(1, sizeof(thread_state)));
    if (s != nullptr) {
      s->slots = s->first_slots;
      s->slot_room = sizeof s->first_slots / sizeof *s->first_slots;
      s->next = all_states;
      all_states = s;
    }
  }
  // A number of its own per thread, not per state: a ticket must not be taken for another's.
  if (s != nullptr) s->number = ++last_number;
  pthread_mutex_unlock(&registry);
  if (s == nullptr) return nullptr;
  pthread_setspecific(exit_key, s);
  own_state = s;
  return s;
}

int fill_slot(const session& s, uint64_t context, uint64_t id, event_slot* known,
              const event_slot** out) {
  const hostwait_cai_driver& driver = *s.driver;
  const in_context scope(s, context);
  if (scope.result() != cu_success) {
    return driver_failure(s.sink, scope.result(), "cuCtxPushCurrent");
  }
  event_slot made{context, id, {}};
  int code = HOSTWAIT_CAI_OK;
  for (void*& event : made.events) {
    if (code == HOSTWAIT_CAI_OK) {
      code = create(s.thread, driver, cu_event_disable_timing, &event, s.sink);
    }
  }
  event_slot* slot = known;
  if (code == HOSTWAIT_CAI_OK && slot == nullptr) {
    slot = free_slot(s.thread);
    if (slot == nullptr) {
      code = fail(s.sink, HOSTWAIT_CAI_ERR_NO_MEMORY, "", -1, "out of memory");
    }
  }
  if (code == HOSTWAIT_CAI_OK) {
    *slot = made;
    *out = slot;
    return code;
  }
  for (void* event : made.events) {
    if (event != nullptr) driver.event_destroy(event);
  }
  return code;
}

int take_event(thread_state* thread, const hostwait_cai_driver& driver, uint64_t context,
               const error_sink& sink, uint64_t* event) {
  const uint64_t id = context_id(driver, context);
  *event = 0;
  pthread_mutex_lock(&registry);
  for (size_t i = pool.count; i-- > 0 && *event == 0;) {
    if (pool.items[i].context != context) continue;
    if (pool.items[i].context_id == id) *event = pool.items[i].event;
    pool.items[i] = pool.items[--pool.count];  // used, or of a context that is gone
  }
  pthread_mutex_unlock(&registry);
  if (*event != 0) return HOSTWAIT_CAI_OK;
  void* made = nullptr;
  const int code =
      create(thread, driver, cu_event_disable_timing | cu_event_blocking_sync, &made, sink);
  *event = value(made);
  return code;
}

void give_event(const hostwait_cai_driver& driver, uint64_t context, uint64_t event) {
  if (event == 0) return;
  const uint64_t id = context_id(driver, context);
  pthread_mutex_lock(&registry);
  if (pool.count == pool.room) {
    const size_t room = pool.room == 0 ? 16 : pool.room * 2;
    auto* items = static_cast<pooled_event*>(realloc(pool.items, room * sizeof(pooled_event)));
    if (items != nullptr) {
      pool.items = items;
      pool.room = room;
    }
  }
  const bool kept = pool.count < pool.room;
  if (kept) pool.items[pool.count++] = {context, id, event};
  pthread_mutex_unlock(&registry);
  if (!kept) driver.event_destroy(handle(event));
}

int primary_context(const hostwait_cai_driver& driver, int device, uint64_t* context) {
  const bool cached = device >= 0 && device < known_devices;
  if (cached) {
    *context = primaries[device].load(std::memory_order_relaxed);
    if (*context != 0) return cu_success;
  }
  void* made = nullptr;
  const int result = driver.primary_ctx_retain(&made, device);
  if (result != cu_success) return result;
  *context = value(made);
  if (cached) primaries[device].store(*context, std::memory_order_relaxed);
  return cu_success;
}

void forget_everything() {
  pthread_mutex_lock(&registry);
  for (thread_state* s = all_states; s != nullptr; s = s->next) {
    s->slot_count = 0;
    memset(s->known, 0, sizeof s->known);
  }
  pool.count = 0;
  pthread_mutex_unlock(&registry);
  for (auto& primary : primaries) primary.store(0, std::memory_order_relaxed);
  forget_retired();
}

}  // namespace hostwait::cai

using namespace hostwait::cai;

int hostwait_cai_stats_get(hostwait_cai_stats* stats) {
  if (!knows_size(stats)) return HOSTWAIT_CAI_ERR_INVALID;
  hostwait_cai_stats sum{};
  pthread_mutex_lock(&registry);
  for (thread_state* s = all_states; s != nullptr; s = s->next) {
#define HOSTWAIT_CAI_SUM(name) sum.name += s->count.name.load(std::memory_order_relaxed);
    HOSTWAIT_CAI_COUNTERS(HOSTWAIT_CAI_SUM)
#undef HOSTWAIT_CAI_SUM
  }
  pthread_mutex_unlock(&registry);
  const uint32_t size = stats->size < sizeof sum ? stats->size : sizeof sum;
  sum.size = size;
  memcpy(stats, &sum, size);
  return HOSTWAIT_CAI_OK;
}
