// SPDX-License-Identifier: Apache-2.0
// Copyright The hostwait authors
// The edges that a ticket holds: four inline, more on the heap.
#pragma once

#include <cstdlib>

#include "session.hpp"

namespace hostwait::cai {

enum : uint16_t {                 // hostwait_cai_ticket.flags
  ticket_skip_boundary = 1 << 0,  // capture policy other than error
  ticket_join_other_thread = 1 << 1,
  ticket_no_back_edge = 1 << 2,
  ticket_attached = 1 << 3,  // host ticket with work enqueued after all
};

// hostwait_cai_edge.event in stream tickets: 0 for an ordinary edge, else one of these or the event
// of an external wait. Event handles are addresses, never this small.
constexpr uint64_t edge_back_only = 1;
constexpr uint64_t edge_external_pending = 2;

inline bool is_external(const hostwait_cai_edge& e) {
  return e.event > edge_back_only;
}

constexpr uint32_t inline_edges = sizeof(hostwait_cai_ticket::edge) / sizeof(hostwait_cai_edge);

// No memory is freed: for fresh tickets. Only what is read is written: the same-stream path is
// counted in nanoseconds.
inline void reset(hostwait_cai_ticket* ticket) {
  ticket->size = sizeof *ticket;
  ticket->state = HOSTWAIT_CAI_TICKET_IDLE;
  ticket->flags = 0;
  ticket->count = 0;
  ticket->thread = 0;
  ticket->consumer = ticket->context = ticket->done = 0;
  ticket->more = nullptr;
}

inline void free_edges(hostwait_cai_ticket* ticket) {
  if (ticket->more != nullptr) free(ticket->more);
  ticket->more = nullptr;
  ticket->count = 0;
}

template <typename Ticket>  // const or not
inline auto& edge_at(Ticket& ticket, uint32_t i) {
  return i < inline_edges ? ticket.edge[i] : ticket.more[i - inline_edges];
}

inline bool has_edge(const hostwait_cai_ticket& ticket, const stream_ref& stream) {
  for (uint32_t i = 0; i < ticket.count; ++i) {
    const hostwait_cai_edge& e = edge_at(ticket, i);
    if (e.stream == stream.stream && e.context == stream.context) return true;
  }
  return false;
}

bool add_to_heap(hostwait_cai_ticket* ticket, const hostwait_cai_edge& edge);

inline bool add_edge(hostwait_cai_ticket* ticket,
                     const hostwait_cai_edge& edge) {  // false: no memory
  if (ticket->count >= inline_edges) return add_to_heap(ticket, edge);
  ticket->edge[ticket->count++] = edge;
  return true;
}

}  // namespace hostwait::cai
