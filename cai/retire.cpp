// SPDX-License-Identifier: Apache-2.0
// Copyright The hostwait authors
// Owners kept alive until a stream has passed; dropped by whoever drains, never by a callback.
#include <cstdlib>
#include <cstring>

#include "session.hpp"

namespace hostwait::cai {
namespace {

struct retired_owner {
  uint64_t queue;
  void* owner;
  uint64_t context, event;
};

pthread_mutex_t queue_lock = PTHREAD_MUTEX_INITIALIZER;
retired_owner* retired = nullptr;  // of all queues
size_t retired_room = 0;
std::atomic<size_t> retired_count{0};  // written under the lock

bool push(const retired_owner& entry) {
  pthread_mutex_lock(&queue_lock);
  if (retired_count == retired_room) {
    const size_t room = retired_room == 0 ? 32 : retired_room * 2;
    auto* grown = static_cast<retired_owner*>(realloc(retired, room * sizeof *retired));
    if (grown != nullptr) {
      retired = grown;
      retired_room = room;
    }
  }
  const bool fits = retired_count < retired_room;
  if (fits) retired[retired_count++] = entry;
  pthread_mutex_unlock(&queue_lock);
  return fits;
}

// The next finished entry of `queue` at or after `from`, taken out.
int take_finished(session& s, uint64_t queue, size_t* from, retired_owner* out, bool* found) {
  *found = false;
  int code = HOSTWAIT_CAI_OK;
  const relaxed_capture_mode relaxed(*s.driver);
  pthread_mutex_lock(&queue_lock);
  while (*from < retired_count) {
    if (retired[*from].queue != queue) {
      ++*from;
      continue;
    }
    const int result = s.driver->event_query(handle(retired[*from].event));
    if (result == cu_not_ready) {
      ++*from;
      continue;
    }
    // Any other failure: the context is gone, and the work with it; the owner is let go.
    if (result != cu_success) code = driver_failure(s.sink, result, "cuEventQuery");
    *out = retired[*from];
    memmove(retired + *from, retired + *from + 1, (--retired_count - *from) * sizeof *retired);
    *found = true;
    break;
  }
  pthread_mutex_unlock(&queue_lock);
  return code;
}

size_t waiting(uint64_t queue) {
  // Whoever retires has returned from that before an owner is to be found here.
  if (retired_count.load(std::memory_order_acquire) == 0) return 0;
  size_t count = 0;
  pthread_mutex_lock(&queue_lock);
  for (size_t i = 0; i < retired_count; ++i) count += retired[i].queue == queue;
  pthread_mutex_unlock(&queue_lock);
  return count;
}

}  // namespace

void forget_retired() {
  pthread_mutex_lock(&queue_lock);
  retired_count = 0;
  pthread_mutex_unlock(&queue_lock);
}

}  // namespace hostwait::cai

using namespace hostwait::cai;

int hostwait_cai_retire(hostwait_cai_stream stream, void* owner, hostwait_cai_error* err) {
  return hostwait_cai_retire_in(0, stream, owner, err);
}

int hostwait_cai_drain(void (*drop)(void* owner, void* user), void* user, size_t* left,
                       hostwait_cai_error* err) {
  return hostwait_cai_drain_in(0, drop, user, left, err);
}

int hostwait_cai_retire_in(uint64_t queue, hostwait_cai_stream stream, void* owner,
                           hostwait_cai_error* err) {
  clear(err);
  session s;
  stream_ref named{};
  if (const int code = s.open_on(stream, "the stream captures: its graph may run at any later time",
                                 err, &named)) {
    return code;
  }
  const in_context scope(s, named.context);
  if (scope.result() != cu_success) {
    return driver_failure(s.sink, scope.result(), "cuCtxPushCurrent");
  }
  uint64_t event = 0;
  if (const int code = take_event(s.thread, *s.driver, named.context, s.sink, &event)) return code;
  if (const int code = s.record(event, named)) {
    give_event(*s.driver, named.context, event);
    return code;
  }
  if (!push({queue, owner, named.context, event})) {
    give_event(*s.driver, named.context, event);
    return fail(s.sink, HOSTWAIT_CAI_ERR_NO_MEMORY, "", -1, "out of memory");
  }
  add(s.thread->count.retired);
  return HOSTWAIT_CAI_OK;
}

int hostwait_cai_drain_in(uint64_t queue, void (*drop)(void* owner, void* user), void* user,
                          size_t* left, hostwait_cai_error* err) {
  clear(err);
  if (left != nullptr) *left = waiting(queue);
  if (drop == nullptr) return fail({err}, HOSTWAIT_CAI_ERR_INVALID, "", -1, "bad arguments");
  if (waiting(queue) == 0) return HOSTWAIT_CAI_OK;
  session s;
  if (const int code = s.open(err)) return code;
  int first = HOSTWAIT_CAI_OK;
  size_t from = 0;
  for (;;) {
    retired_owner entry{};
    bool found = false;
    session attempt = s;
    if (first != HOSTWAIT_CAI_OK) attempt.sink.target = nullptr;
    const int code = take_finished(attempt, queue, &from, &entry, &found);
    if (first == HOSTWAIT_CAI_OK) first = code;
    if (!found) break;
    if (code == HOSTWAIT_CAI_OK) give_event(*s.driver, entry.context, entry.event);
    add(s.thread->count.drained);
    drop(entry.owner, user);  // may call into this library
  }
  if (left != nullptr) *left = waiting(queue);
  return first;
}
