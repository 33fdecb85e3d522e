// SPDX-License-Identifier: Apache-2.0
// Copyright The hostwait authors
// The edges that a ticket holds: four inline, more on the heap.
#pragma once

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

void reset(hostwait_cai_ticket* ticket);  // no memory is freed: for fresh tickets
void free_edges(hostwait_cai_ticket* ticket);
hostwait_cai_edge& edge_at(hostwait_cai_ticket& ticket, uint32_t i);
const hostwait_cai_edge& edge_at(const hostwait_cai_ticket& ticket, uint32_t i);
bool has_edge(const hostwait_cai_ticket& ticket, const stream_ref& stream);
bool add_edge(hostwait_cai_ticket* ticket, const hostwait_cai_edge& edge);  // false: no memory

}  // namespace hostwait::cai
