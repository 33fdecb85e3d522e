// SPDX-License-Identifier: Apache-2.0
// Copyright The hostwait authors
// Storage of edges.
#include "ticket.hpp"

#include <cstdlib>

namespace hostwait::cai {
namespace {

constexpr uint32_t inline_edges = sizeof(hostwait_cai_ticket::edge) / sizeof(hostwait_cai_edge);

}  // namespace

void reset(hostwait_cai_ticket* ticket) {
  // Only what is read: the same-stream path is counted in nanoseconds.
  ticket->size = sizeof *ticket;
  ticket->state = HOSTWAIT_CAI_TICKET_IDLE;
  ticket->flags = 0;
  ticket->count = 0;
  ticket->thread = 0;
  ticket->consumer = ticket->context = ticket->done = 0;
  ticket->more = nullptr;
}

void free_edges(hostwait_cai_ticket* ticket) {
  free(ticket->more);
  ticket->more = nullptr;
  ticket->count = 0;
}

hostwait_cai_edge& edge_at(hostwait_cai_ticket& ticket, uint32_t i) {
  return i < inline_edges ? ticket.edge[i] : ticket.more[i - inline_edges];
}

const hostwait_cai_edge& edge_at(const hostwait_cai_ticket& ticket, uint32_t i) {
  return i < inline_edges ? ticket.edge[i] : ticket.more[i - inline_edges];
}

bool has_edge(const hostwait_cai_ticket& ticket, const stream_ref& stream) {
  for (uint32_t i = 0; i < ticket.count; ++i) {
    const hostwait_cai_edge& e = edge_at(ticket, i);
    if (e.stream == stream.stream && e.context == stream.context) return true;
  }
  return false;
}

bool add_edge(hostwait_cai_ticket* ticket, const hostwait_cai_edge& edge) {
  if (ticket->count >= inline_edges) {
    // The heap part has room for 4, 8, 16, … edges: it is full when its length is one of these.
    const uint32_t used = ticket->count - inline_edges;
    const bool full = used == 0 || (used >= 4 && (used & (used - 1)) == 0);
    if (full) {
      const size_t room = used == 0 ? 4 : size_t{used} * 2;
      void* grown = realloc(ticket->more, room * sizeof edge);
      if (grown == nullptr) return false;
      ticket->more = static_cast<hostwait_cai_edge*>(grown);
    }
  }
  edge_at(*ticket, ticket->count++) = edge;
  return true;
}

}  // namespace hostwait::cai
