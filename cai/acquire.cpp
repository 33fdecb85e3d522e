// SPDX-License-Identifier: Apache-2.0
// Copyright The hostwait authors
// Acquire and release: the two edges between a producer's and a consumer's stream.
#include "env.hpp"
#include "plan.hpp"
#include "policy.hpp"
#include "shim.hpp"

namespace hostwait::cai {
namespace {

// Nothing to order, seen without any driver call: the producer says "ready", or it used the very
// handle that the consumer uses.
bool trivial(const hostwait_cai_ready* in, size_t n, uint64_t consumer, counters* count) {
  size_t same = 0;
  for (size_t i = 0; i < n; ++i) {
    if (in[i].kind == HOSTWAIT_CAI_READY_NOW) continue;
    if (in[i].kind != HOSTWAIT_CAI_READY_STREAM || in[i].stream != consumer ||
        consumer <= HOSTWAIT_CAI_PER_THREAD) {
      return false;
    }
    ++same;
  }
  if (same > 0) add(count->elided, same);
  if (n > same) add(count->ready_now, n - same);
  return true;
}

int issue(session& s, const planner& plan, const hostwait_cai_ready* in, size_t n,
          hostwait_cai_ticket* ticket) {
  counters& count = s.thread->count;
  uint64_t asked = 0;  // the context of the edge before
  for (uint32_t i = 0; i < ticket->count; ++i) {
    hostwait_cai_edge& e = edge_at(*ticket, i);
    stream_ref producer{e.stream, e.context};
    if (e.event == edge_back_only) continue;
    if (e.event == edge_external_pending) {
      e.event = 0;  // not an event yet, should creating one fail
      if (const int code = s.new_event(e.context, &e.event)) return code;
      if (const int code = s.record(e.event, producer)) return code;
      if (const int code = s.wait(plan.consumer(), e.event, cu_wait_external)) return code;
    } else {
      const auto kind = plan.consumer_captures() ? edge_kind::capture : edge_kind::there;
      uint64_t event = 0;
      if (const int code = s.mark(&producer, kind, e.context == asked, &event)) return code;
      if (const int code = s.wait(plan.consumer(), event, 0)) return code;
      asked = producer.context;
      e.context = producer.context;
    }
    add(count.waits);
  }
  for (size_t i = 0; plan.has_events() && i < n; ++i) {
    unsigned flags = 0;
    if (!plan.waits_for_event(in[i], &flags)) continue;
    if (const int code = s.wait(plan.consumer(), in[i].event, flags)) return code;
    add(count.event_waits);
  }
  return HOSTWAIT_CAI_OK;
}

[[gnu::always_inline]] inline int free_of_captures(session& s, const stream_ref& consumer,
                                                   const stream_ref& producer, bool* free) {
  capture_state here, there;
  if (const int code = s.probe(consumer, &here)) return code;
  if (const int code = s.probe(producer, &there)) return code;
  *free = here.status == capture_state::none && there.status == capture_state::none;
  return HOSTWAIT_CAI_OK;
}

// What acquire is called for most, without the planner: one array behind a handle, a handle that
// consumes, no option that bears on it, no capture. `done` false: it is another case, and nothing
// has been done but questions.
int acquire_plain(session& s, const hostwait_cai_policy& policy, const hostwait_cai_ready& in,
                  uint64_t consuming, hostwait_cai_ticket* ticket, bool* done) {
  *done = false;
  if (in.kind != HOSTWAIT_CAI_READY_STREAM || in.stream <= HOSTWAIT_CAI_PER_THREAD ||
      consuming <= HOSTWAIT_CAI_PER_THREAD ||
      (policy.options & ~uint32_t{HOSTWAIT_CAI_NO_BACK_EDGE}) != 0 || !sync_wanted(policy)) {
    return HOSTWAIT_CAI_OK;
  }
  const stream_ref consumer{consuming, 0};
  stream_ref producer{};
  s.sink.array = 0;
  if (const int code = s.name_again(in.stream, 0, &producer)) return code;
  if (const int code = free_of_captures(s, consumer, producer, done)) return code;
  if (!*done) return HOSTWAIT_CAI_OK;
  s.sink.array = -1;
  uint64_t event = 0;
  if (const int code = s.mark(&producer, edge_kind::there, false, &event)) return code;
  if (const int code = s.wait(consumer, event, 0)) return code;
  ticket->edge[ticket->count++] = {producer.stream, producer.context, 0};
  add(s.thread->count.waits);
  return HOSTWAIT_CAI_OK;
}

[[gnu::noinline]] int acquire_planned(session& s, const hostwait_cai_policy& policy,
                                      const hostwait_cai_ready* in, size_t n, uint64_t consumer,
                                      bool way_back, hostwait_cai_ticket* ticket) {
  planner plan(s, policy, consumer, way_back, ticket);
  for (size_t i = 0; i < n; ++i) {
    if (const int code = plan.add(in[i], static_cast<int32_t>(i))) return code;
  }
  s.sink.array = -1;
  if (const int code = issue(s, plan, in, n, ticket)) return code;
  ticket->context = plan.consumer().context;
  return HOSTWAIT_CAI_OK;
}

// The consumer's stream as release sees it: known to be alive, perhaps from another thread.
int name_consumer(session& s, const hostwait_cai_ticket& ticket, stream_ref* out) {
  uint64_t stream = ticket.consumer;
  if (stream == HOSTWAIT_CAI_PER_THREAD && ticket.thread != s.thread->number) {
    if (!(ticket.flags & ticket_join_other_thread)) {
      return fail(s.sink, HOSTWAIT_CAI_ERR_PTDS_THREAD, "stream", -1,
                  "released on another thread: the per-thread stream cannot be named any more");
    }
    stream = HOSTWAIT_CAI_LEGACY;
  }
  const bool context_needed = stream <= HOSTWAIT_CAI_PER_THREAD && ticket.context == 0;
  return s.name_again(stream, context_needed ? s.current() : ticket.context, out);
}

// The end of the consumer's work, marked once however many producers wait for it.
struct consumer_end {
  stream_ref stream;
  capture_state capture;
  bool alive = false;  // see slot_for
  uint64_t event = 0;  // 0: not marked yet
};

int give_back_edge(session& s, const hostwait_cai_ticket& ticket, consumer_end& consumer,
                   const hostwait_cai_edge& edge) {
  stream_ref producer{edge.stream, edge.context};
  if (producer.stream == HOSTWAIT_CAI_PER_THREAD && ticket.thread != s.thread->number) {
    if (!(ticket.flags & ticket_join_other_thread)) {
      return fail(s.sink, HOSTWAIT_CAI_ERR_PTDS_THREAD, "stream", -1,
                  "released on another thread: the per-thread stream cannot be named any more");
    }
    producer.stream = HOSTWAIT_CAI_LEGACY;
    if (producer == consumer.stream) return HOSTWAIT_CAI_OK;
  }
  capture_state capture;
  if (const int code = s.probe(producer, &capture)) return code;
  const bool both_free =
      capture.status == capture_state::none && consumer.capture.status == capture_state::none;
  const bool one_capture = capture.status == capture_state::active && capture == consumer.capture;
  if (!both_free && !one_capture) {
    if (ticket.flags & ticket_skip_boundary) {
      add(s.thread->count.back_edges_skipped);
      return HOSTWAIT_CAI_OK;
    }
    add(s.thread->count.capture_refused);
    const bool implicit = capture.status == capture_state::implicit ||
                          consumer.capture.status == capture_state::implicit;
    return fail(s.sink,
                implicit ? HOSTWAIT_CAI_ERR_CAPTURE_LEGACY : HOSTWAIT_CAI_ERR_CAPTURE_BOUNDARY,
                "stream", -1, "no back edge: the streams are not in the same capture");
  }
  if (consumer.event == 0) {
    const auto kind = one_capture ? edge_kind::capture : edge_kind::back;
    uint64_t event = 0;
    if (const int code = s.mark(&consumer.stream, kind, consumer.alive, &event)) return code;
    consumer.event = event;
  }
  if (const int code = s.wait(producer, consumer.event, 0)) return code;
  add(s.thread->count.back_edges);
  return HOSTWAIT_CAI_OK;
}

[[gnu::noinline]] int give_back_all(session& s, const hostwait_cai_ticket& ticket, bool host) {
  consumer_end consumer{};
  if (const int code = name_consumer(s, ticket, &consumer.stream)) return code;
  if (const int code = s.probe(consumer.stream, &consumer.capture)) return code;
  const bool same_thread = !host && ticket.thread == s.thread->number;
  for (uint32_t i = 0; same_thread && !consumer.alive && i < ticket.count; ++i) {
    const hostwait_cai_edge& e = edge_at(ticket, i);
    consumer.alive = e.event == 0 && e.context == consumer.stream.context;
  }
  int first = HOSTWAIT_CAI_OK;
  for (uint32_t i = 0; i < ticket.count; ++i) {
    const hostwait_cai_edge& e = edge_at(ticket, i);
    if (host ? e.stream == 0 : is_external(e)) continue;
    const int code = give_back_edge(s, ticket, consumer, e);
    if (first != HOSTWAIT_CAI_OK || code == HOSTWAIT_CAI_OK) continue;
    first = code;
    s.sink.target = nullptr;  // the first error is the one that is told
  }
  return first;
}

// The way back of what acquire_plain has ordered. `done` as there.
int give_back_plain(session& s, const hostwait_cai_ticket& ticket, bool* done) {
  *done = false;
  const hostwait_cai_edge& edge = ticket.edge[0];
  if (ticket.count != 1 || edge.event != 0 || edge.stream <= HOSTWAIT_CAI_PER_THREAD ||
      ticket.consumer <= HOSTWAIT_CAI_PER_THREAD) {
    return HOSTWAIT_CAI_OK;
  }
  const stream_ref producer{edge.stream, edge.context};
  stream_ref consumer{};
  if (const int code = s.name_again(ticket.consumer, 0, &consumer)) return code;
  if (const int code = free_of_captures(s, consumer, producer, done)) return code;
  if (!*done) return HOSTWAIT_CAI_OK;
  const bool alive = ticket.thread == s.thread->number && producer.context == consumer.context;
  uint64_t event = 0;
  if (const int code = s.mark(&consumer, edge_kind::back, alive, &event)) return code;
  if (const int code = s.wait(producer, event, 0)) return code;
  add(s.thread->count.back_edges);
  return HOSTWAIT_CAI_OK;
}

void give_back_events(const hostwait_cai_driver& driver, const hostwait_cai_ticket& ticket,
                      bool host) {
  for (uint32_t i = 0; host && i < ticket.count; ++i) {
    const hostwait_cai_edge& e = edge_at(ticket, i);
    if (e.stream != 0) give_event(driver, e.context, e.event);
  }
  if (ticket.done != 0) give_event(driver, ticket.context, ticket.done);
}

}  // namespace
}  // namespace hostwait::cai

using namespace hostwait::cai;

int hostwait_cai_acquire(const hostwait_cai_ready* in, size_t n, hostwait_cai_stream consumer,
                         const hostwait_cai_policy* given, hostwait_cai_ticket* out,
                         hostwait_cai_error* err) {
  clear(err);
  hostwait_cai_ticket own;
  hostwait_cai_ticket* ticket = out != nullptr ? out : &own;
  reset(ticket);
  if (consumer.value == 0) {
    return fail({err}, HOSTWAIT_CAI_ERR_STREAM_ZERO, "consumer", -1,
                "consumer stream 0 is ambiguous: 1 is the legacy, 2 the per-thread default stream");
  }
  if (in == nullptr && n > 0) return fail({err}, HOSTWAIT_CAI_ERR_INVALID, "", -1, "bad arguments");
  ticket->consumer = consumer.value;
  thread_state* thread = this_thread();
  if (thread != nullptr) {
    add(thread->count.acquires);
    ticket->thread = thread->number;
    if (trivial(in, n, consumer.value, &thread->count)) {
      ticket->state = HOSTWAIT_CAI_TICKET_STREAM;
      return HOSTWAIT_CAI_OK;
    }
  }
  session s;
  if (const int code = s.open(err)) return code;
  hostwait_cai_policy room;
  const hostwait_cai_policy& policy = policy_in_force(given, &room);
  bool done = false;
  int code = HOSTWAIT_CAI_OK;
  if (n == 1) code = acquire_plain(s, policy, *in, consumer.value, ticket, &done);
  if (code == HOSTWAIT_CAI_OK && !done) {
    code = acquire_planned(s, policy, in, n, consumer.value, out != nullptr, ticket);
  }
  if (code != HOSTWAIT_CAI_OK || out == nullptr) {
    if (code != HOSTWAIT_CAI_OK) hostwait_cai_drop_external(ticket);
    free_edges(ticket);
    return code;
  }
  ticket->state = HOSTWAIT_CAI_TICKET_STREAM;
  if (policy.capture != HOSTWAIT_CAI_CAPTURE_ERROR) ticket->flags |= ticket_skip_boundary;
  if ((policy.lenient & HOSTWAIT_CAI_LENIENT_THREAD) || policy.ptds == HOSTWAIT_CAI_PTDS_JOIN) {
    ticket->flags |= ticket_join_other_thread;
  }
  if (policy.options & HOSTWAIT_CAI_NO_BACK_EDGE) ticket->flags |= ticket_no_back_edge;
  return HOSTWAIT_CAI_OK;
}

int hostwait_cai_release(hostwait_cai_ticket* ticket, hostwait_cai_error* err) {
  clear(err);
  if (ticket == nullptr) return fail({err}, HOSTWAIT_CAI_ERR_INVALID, "", -1, "bad arguments");
  if (ticket->state == HOSTWAIT_CAI_TICKET_IDLE) return HOSTWAIT_CAI_OK;
  const bool host = ticket->state == HOSTWAIT_CAI_TICKET_HOST;
  ticket->state = HOSTWAIT_CAI_TICKET_IDLE;
  if (ticket->count == 0 && ticket->done == 0) return HOSTWAIT_CAI_OK;
  session s;
  int code = s.open(err);
  if (code == HOSTWAIT_CAI_OK) {
    const bool owed = host ? (ticket->flags & ticket_attached) != 0
                           : ticket->count > 0 && !(ticket->flags & ticket_no_back_edge);
    bool done = !owed;
    if (owed && !host) code = give_back_plain(s, *ticket, &done);
    if (code == HOSTWAIT_CAI_OK && !done) code = give_back_all(s, *ticket, host);
    if (host || ticket->done != 0) give_back_events(*s.driver, *ticket, host);
  }
  ticket->done = 0;
  // External events stay with the ticket: the graph waits for them until drop_external.
  bool keeps = false;
  for (uint32_t i = 0; !host && i < ticket->count; ++i) keeps |= is_external(edge_at(*ticket, i));
  if (!keeps) free_edges(ticket);
  return code;
}

int hostwait_cai_rearm(const hostwait_cai_ticket* ticket, hostwait_cai_error* err) {
  clear(err);
  if (ticket == nullptr) return fail({err}, HOSTWAIT_CAI_ERR_INVALID, "", -1, "bad arguments");
  session s;
  if (const int code = s.open(err)) return code;
  for (uint32_t i = 0; i < ticket->count; ++i) {
    const hostwait_cai_edge& e = edge_at(*ticket, i);
    if (!is_external(e)) continue;
    const stream_ref producer{e.stream, e.context};
    capture_state capture;
    if (const int code = s.probe(producer, &capture)) return code;
    if (capture.status != capture_state::none) {
      return fail(s.sink, HOSTWAIT_CAI_ERR_CAPTURE_BOUNDARY, "stream", -1,
                  "the producer's stream captures");
    }
    if (const int code = s.record(e.event, producer)) return code;
  }
  return HOSTWAIT_CAI_OK;
}

void hostwait_cai_drop_external(hostwait_cai_ticket* ticket) {
  if (ticket == nullptr || ticket->state == HOSTWAIT_CAI_TICKET_HOST) return;
  const hostwait_cai_driver* driver = loaded_driver();
  for (uint32_t i = 0; i < ticket->count; ++i) {
    hostwait_cai_edge& e = edge_at(*ticket, i);
    if (is_external(e) && e.event != edge_external_pending && driver != nullptr) {
      driver->event_destroy(handle(e.event));
    }
    if (is_external(e)) e.event = edge_back_only;
  }
  if (ticket->state == HOSTWAIT_CAI_TICKET_IDLE) free_edges(ticket);
}
