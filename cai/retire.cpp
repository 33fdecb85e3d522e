// SPDX-License-Identifier: Apache-2.0
// Copyright The hostwait authors
// Owners kept alive until a stream has passed; dropped by whoever drains, never by a callback.
#include <cstdlib>
#include <cstring>

#include "session.hpp"

namespace hostwait::cai {
namespace {

struct retired_owner {
  void* owner;
  uint64_t context, event;
};

pthread_mutex_t queue_lock = PTHREAD_MUTEX_INITIALIZER;
retired_owner* queue = nullptr;
size_t queue_count = 0, queue_room = 0;

bool push(const retired_owner& entry) {
  pthread_mutex_lock(&queue_lock);
  if (queue_count == queue_room) {
    const size_t room = queue_room == 0 ? 32 : queue_room * 2;
    auto* grown = static_cast<retired_owner*>(realloc(queue, room * sizeof *queue));
    if (grown != nullptr) {
      queue = grown;
      queue_room = room;
    }
  }
  const bool fits = queue_count < queue_room;
  if (fits) queue[queue_count++] = entry;
  pthread_mutex_unlock(&queue_lock);
  return fits;
}

// The next finished entry at or after `from`, taken out of the queue.
int take_finished(session& s, size_t* from, retired_owner* out, bool* found) {
  *found = false;
  int code = HOSTWAIT_CAI_OK;
  const relaxed_capture_mode relaxed(*s.driver);
  pthread_mutex_lock(&queue_lock);
  while (*from < queue_count) {
    const int result = s.driver->event_query(handle(queue[*from].event));
    if (result == cu_not_ready) {
      ++*from;
      continue;
    }
    // Any other failure: the context is gone, and the work with it; the owner is let go.
    if (result != cu_success) code = driver_failure(s.sink, result, "cuEventQuery");
    *out = queue[*from];
    memmove(queue + *from, queue + *from + 1, (--queue_count - *from) * sizeof *queue);
    *found = true;
    break;
  }
  pthread_mutex_unlock(&queue_lock);
  return code;
}

size_t waiting() {
  pthread_mutex_lock(&queue_lock);
  const size_t count = queue_count;
  pthread_mutex_unlock(&queue_lock);
  return count;
}

}  // namespace

void forget_retired() {
  pthread_mutex_lock(&queue_lock);
  queue_count = 0;
  pthread_mutex_unlock(&queue_lock);
}

}  // namespace hostwait::cai

using namespace hostwait::cai;

int hostwait_cai_retire(hostwait_cai_stream stream, void* owner, hostwait_cai_error* err) {
  clear(err);
  if (stream.value == 0) {
    return fail({err}, HOSTWAIT_CAI_ERR_STREAM_ZERO, "stream", -1,
                "stream 0 is ambiguous: 1 is the legacy, 2 the per-thread default stream");
  }
  session s;
  if (const int code = s.open(err)) return code;
  stream_ref named{};
  if (const int code = s.name(stream.value, s.current(), &named)) return code;
  capture_state capture;
  if (const int code = s.probe(named, &capture)) return code;
  if (capture.status != capture_state::none) {
    return fail(s.sink, HOSTWAIT_CAI_ERR_CAPTURE_BOUNDARY, "stream", -1,
                "the stream captures: its graph may run at any later time");
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
  if (!push({owner, named.context, event})) {
    give_event(*s.driver, named.context, event);
    return fail(s.sink, HOSTWAIT_CAI_ERR_NO_MEMORY, "", -1, "out of memory");
  }
  add(s.thread->count.retired);
  return HOSTWAIT_CAI_OK;
}

int hostwait_cai_drain(void (*drop)(void* owner, void* user), void* user, size_t* left,
                       hostwait_cai_error* err) {
  clear(err);
  if (left != nullptr) *left = waiting();
  if (drop == nullptr) return fail({err}, HOSTWAIT_CAI_ERR_INVALID, "", -1, "bad arguments");
  if (waiting() == 0) return HOSTWAIT_CAI_OK;
  session s;
  if (const int code = s.open(err)) return code;
  int first = HOSTWAIT_CAI_OK;
  size_t from = 0;
  for (;;) {
    retired_owner entry{};
    bool found = false;
    session attempt = s;
    if (first != HOSTWAIT_CAI_OK) attempt.sink.target = nullptr;
    const int code = take_finished(attempt, &from, &entry, &found);
    if (first == HOSTWAIT_CAI_OK) first = code;
    if (!found) break;
    if (code == HOSTWAIT_CAI_OK) give_event(*s.driver, entry.context, entry.event);
    add(s.thread->count.drained);
    drop(entry.owner, user);  // may call into this library
  }
  if (left != nullptr) *left = waiting();
  return first;
}
