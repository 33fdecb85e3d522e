// SPDX-License-Identifier: Apache-2.0
// Copyright The hostwait authors
// The host as consumer: events to poll, and the one place where the host waits.
#include <sched.h>
#include <time.h>

#include "plan.hpp"
#include "policy.hpp"
#include "shim.hpp"

namespace hostwait::cai {
namespace {

// Plans for the host and records one event per distinct producer stream.
int record_all(session& s, const hostwait_cai_ready* in, size_t n,
               const hostwait_cai_policy& policy, hostwait_cai_ticket* ticket) {
  planner plan(s, policy, 0, false, ticket);
  for (size_t i = 0; i < n; ++i) {
    if (const int code = plan.add(in[i], static_cast<int32_t>(i))) return code;
  }
  s.sink.array = -1;
  for (uint32_t i = 0; i < ticket->count; ++i) {
    hostwait_cai_edge& e = edge_at(*ticket, i);
    const in_context scope(s, e.context);
    if (scope.result() != cu_success) {
      return driver_failure(s.sink, scope.result(), "cuCtxPushCurrent");
    }
    if (const int code = take_event(s.thread, *s.driver, e.context, s.sink, &e.event)) return code;
    const int result = s.driver->event_record(handle(e.event), handle(e.stream));
    if (result != cu_success) return driver_failure(s.sink, result, "cuEventRecord");
  }
  const uint32_t own = ticket->count;
  for (size_t i = 0; i < n; ++i) {
    unsigned flags = 0;
    if (!plan.waits_for_event(in[i], &flags)) continue;
    if (!add_edge(ticket, {0, 0, in[i].event})) {
      return fail(s.sink, HOSTWAIT_CAI_ERR_NO_MEMORY, "", -1, "out of memory");
    }
  }
  add(s.thread->count.event_waits, ticket->count - own);
  return HOSTWAIT_CAI_OK;
}

int begin(session& s, const hostwait_cai_ready* in, size_t n, const hostwait_cai_policy* given,
          hostwait_cai_ticket* ticket) {
  const hostwait_cai_policy policy = complete_policy(given);
  const int code = record_all(s, in, n, policy, ticket);
  if (code != HOSTWAIT_CAI_OK) {
    for (uint32_t i = 0; i < ticket->count; ++i) {
      const hostwait_cai_edge& e = edge_at(*ticket, i);
      if (e.stream != 0 && e.event > edge_external_pending) {
        give_event(*s.driver, e.context, e.event);
      }
    }
    free_edges(ticket);
    return code;
  }
  ticket->state = HOSTWAIT_CAI_TICKET_HOST;
  ticket->thread = s.thread->number;
  if (policy.capture != HOSTWAIT_CAI_CAPTURE_ERROR) ticket->flags |= ticket_skip_boundary;
  if ((policy.lenient & HOSTWAIT_CAI_LENIENT_THREAD) || policy.ptds == HOSTWAIT_CAI_PTDS_JOIN) {
    ticket->flags |= ticket_join_other_thread;
  }
  return HOSTWAIT_CAI_OK;
}

int query(session& s, uint64_t event, int* done) {
  const relaxed_capture_mode relaxed(*s.driver);
  const int result = s.driver->event_query(handle(event));
  *done = result == cu_success;
  return result == cu_success || result == cu_not_ready
             ? HOSTWAIT_CAI_OK
             : driver_failure(s.sink, result, "cuEventQuery");
}

// Where a policy refuses host waits: ask again and again, ever less often.
int poll_until_done(session& s, uint64_t event) {
  const exchange_label label(HOSTWAIT_LOG, HOSTWAIT_POLL);
  timespec pause{0, 1000};
  for (int attempt = 0;; ++attempt) {
    int done = 0;
    if (const int code = query(s, event, &done)) return code;
    if (done) return HOSTWAIT_CAI_OK;
    if (attempt < 8) {
      sched_yield();
      continue;
    }
    nanosleep(&pause, nullptr);
    if (pause.tv_nsec < 100000) pause.tv_nsec *= 2;
  }
}

int wait_for(session& s, uint64_t event) {
  hostwait_action action;
  if (!host_wait_allowed(HOSTWAIT_EVENT_SYNC, &action)) return poll_until_done(s, event);
  const relaxed_capture_mode relaxed(*s.driver);
  const exchange_label label(action, HOSTWAIT_EVENT_SYNC);
  const int result = s.driver->event_synchronize(handle(event));
  return result == cu_success ? HOSTWAIT_CAI_OK
                              : driver_failure(s.sink, result, "cuEventSynchronize");
}

// An event behind all that the consumer's stream holds now.
int record_done(session& s, hostwait_cai_ticket* ticket) {
  stream_ref consumer{};
  if (const int code = s.name(ticket->consumer,
                              ticket->context != 0 ? ticket->context : s.current(), &consumer)) {
    return code;
  }
  if (consumer.stream == HOSTWAIT_CAI_PER_THREAD && ticket->thread != s.thread->number) {
    return fail(s.sink, HOSTWAIT_CAI_ERR_PTDS_THREAD, "stream", -1,
                "polled on another thread: the per-thread stream cannot be named any more");
  }
  capture_state capture;
  if (const int code = s.probe(consumer, &capture)) return code;
  if (capture.status != capture_state::none) {
    return fail(s.sink, HOSTWAIT_CAI_ERR_CAPTURE_HOST_SYNC, "stream", -1,
                "the consumer's stream captures: its work cannot be polled");
  }
  ticket->context = consumer.context;
  const in_context scope(s, consumer.context);
  if (scope.result() != cu_success) {
    return driver_failure(s.sink, scope.result(), "cuCtxPushCurrent");
  }
  uint64_t event = 0;
  if (const int code = take_event(s.thread, *s.driver, consumer.context, s.sink, &event)) {
    return code;
  }
  if (const int code = s.record(event, consumer)) {
    give_event(*s.driver, consumer.context, event);
    return code;
  }
  ticket->done = event;
  return HOSTWAIT_CAI_OK;
}

}  // namespace
}  // namespace hostwait::cai

using namespace hostwait::cai;

int hostwait_cai_acquire_host(const hostwait_cai_ready* in, size_t n,
                              const hostwait_cai_policy* policy, hostwait_cai_ticket* ticket,
                              hostwait_cai_error* err) {
  clear(err);
  if (ticket == nullptr || (in == nullptr && n > 0)) {
    return fail({err}, HOSTWAIT_CAI_ERR_INVALID, "", -1, "bad arguments");
  }
  reset(ticket);
  session s;
  if (const int code = s.open(err)) return code;
  add(s.thread->count.acquires);
  return begin(s, in, n, policy, ticket);
}

int hostwait_cai_poll(hostwait_cai_ticket* ticket, int* done, hostwait_cai_error* err) {
  clear(err);
  if (ticket == nullptr || done == nullptr) {
    return fail({err}, HOSTWAIT_CAI_ERR_INVALID, "", -1, "bad arguments");
  }
  *done = 0;
  if (ticket->state == HOSTWAIT_CAI_TICKET_IDLE) {
    return fail({err}, HOSTWAIT_CAI_ERR_INVALID, "", -1, "the ticket is not in use");
  }
  session s;
  if (const int code = s.open(err)) return code;
  add(s.thread->count.polls);
  if (ticket->state == HOSTWAIT_CAI_TICKET_STREAM) {
    if (ticket->done == 0) {
      if (const int code = record_done(s, ticket)) return code;
    }
    return query(s, ticket->done, done);
  }
  for (uint32_t i = 0; i < ticket->count; ++i) {
    if (const int code = query(s, edge_at(*ticket, i).event, done)) return code;
    if (!*done) return HOSTWAIT_CAI_OK;
  }
  *done = 1;
  return HOSTWAIT_CAI_OK;
}

int hostwait_cai_wait_host(const hostwait_cai_ready* in, size_t n,
                           const hostwait_cai_policy* policy, hostwait_cai_ticket* out,
                           hostwait_cai_error* err) {
  clear(err);
  hostwait_cai_ticket own;
  hostwait_cai_ticket* ticket = out != nullptr ? out : &own;
  reset(ticket);
  if (in == nullptr && n > 0) return fail({err}, HOSTWAIT_CAI_ERR_INVALID, "", -1, "bad arguments");
  session s;
  if (const int code = s.open(err)) return code;
  add(s.thread->count.acquires);
  if (const int code = begin(s, in, n, policy, ticket)) return code;
  int code = HOSTWAIT_CAI_OK;
  for (uint32_t i = 0; i < ticket->count && code == HOSTWAIT_CAI_OK; ++i) {
    code = wait_for(s, edge_at(*ticket, i).event);
    if (code == HOSTWAIT_CAI_OK) add(s.thread->count.host_waits);
  }
  if (out == nullptr || code != HOSTWAIT_CAI_OK) {
    ticket->flags &= static_cast<uint16_t>(~ticket_attached);
    hostwait_cai_release(ticket, nullptr);
  }
  return code;
}

int hostwait_cai_attach(hostwait_cai_ticket* ticket, hostwait_cai_stream consumer,
                        hostwait_cai_error* err) {
  clear(err);
  if (ticket == nullptr || ticket->state != HOSTWAIT_CAI_TICKET_HOST) {
    return fail({err}, HOSTWAIT_CAI_ERR_INVALID, "", -1, "not a host ticket in use");
  }
  if (consumer.value == 0) {
    return fail({err}, HOSTWAIT_CAI_ERR_STREAM_ZERO, "consumer", -1,
                "consumer stream 0 is ambiguous: 1 is the legacy, 2 the per-thread default stream");
  }
  session s;
  if (const int code = s.open(err)) return code;
  ticket->consumer = consumer.value;
  ticket->context = consumer.value <= HOSTWAIT_CAI_PER_THREAD ? s.current() : 0;
  ticket->thread = s.thread->number;
  ticket->flags |= ticket_attached;
  return HOSTWAIT_CAI_OK;
}
