// SPDX-License-Identifier: Apache-2.0
// Copyright The hostwait authors
// Storage of edges beyond those in the ticket.
#include "ticket.hpp"

namespace hostwait::cai {

bool add_to_heap(hostwait_cai_ticket* ticket, const hostwait_cai_edge& edge) {
  // Room for 4, 8, 16, … edges: it is full when its length is one of these.
  const uint32_t used = ticket->count - inline_edges;
  const bool full = used == 0 || (used >= 4 && (used & (used - 1)) == 0);
  if (full) {
    const size_t room = used == 0 ? 4 : size_t{used} * 2;
    void* grown = realloc(ticket->more, room * sizeof edge);
    if (grown == nullptr) return false;
    ticket->more = static_cast<hostwait_cai_edge*>(grown);
  }
  edge_at(*ticket, ticket->count++) = edge;
  return true;
}

}  // namespace hostwait::cai
