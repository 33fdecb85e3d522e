// SPDX-License-Identifier: Apache-2.0
// Copyright The hostwait authors
// Decides what an acquire has to do, array by array, before anything is ordered.
#pragma once

#include "env.hpp"
#include "ticket.hpp"

namespace hostwait::cai {

class planner {
 public:
  // `consumer` is 0 for the host. Edges are collected in `ticket`.
  planner(session& s, const hostwait_cai_policy& policy, uint64_t consumer, bool way_back,
          hostwait_cai_ticket* ticket)
      : session_(s), policy_(policy), way_back_(way_back), ticket_(ticket) {
    // A handle's context is not needed to make it wait.
    const bool default_stream = consumer != 0 && consumer <= HOSTWAIT_CAI_PER_THREAD;
    consumer_ = {consumer, default_stream ? s.current() : 0};
  }

  int add(const hostwait_cai_ready& ready, int32_t index) {
    session_.sink.array = index;
    if (ready.kind == HOSTWAIT_CAI_READY_STREAM && ready.stream != 0 && sync_wanted(policy_)) {
      return add_stream(ready.stream, ready);
    }
    return add_other(ready, index);
  }

  const stream_ref& consumer() const { return consumer_; }
  bool consumer_captures() const { return consumer_capture_.status == capture_state::active; }
  bool has_events() const { return events_; }
  // Foreign events that are to be waited for, one after the other: true, and how.
  bool waits_for_event(const hostwait_cai_ready& ready, unsigned* flags) const;

 private:
  int add_other(const hostwait_cai_ready& ready, int32_t index);
  int add_stream(uint64_t stream, const hostwait_cai_ready& ready);
  int add_event(const hostwait_cai_ready& ready);
  int add_unknown(const hostwait_cai_ready& ready);
  int add_after_dlpack(const hostwait_cai_ready& ready, bool current_known, uint64_t current);
  int add_back_only(uint64_t stream, const hostwait_cai_ready& ready);
  int wait_for_device(const hostwait_cai_ready& ready);
  int opt_out(const hostwait_cai_ready& ready, int32_t index);
  int probe_consumer(const hostwait_cai_ready& ready, uint64_t producer_context = 0);
  int boundary(const stream_ref* producer, const capture_state& producer_capture);
  int judge_captures(const stream_ref& producer, bool* drop);
  int implied(const stream_ref& producer, bool* yes);
  int keep(const stream_ref& stream, uint64_t marker);
  bool for_host() const { return consumer_.stream == 0; }

  session& session_;
  const hostwait_cai_policy& policy_;
  bool way_back_;
  hostwait_cai_ticket* ticket_;
  stream_ref consumer_;
  capture_state consumer_capture_;
  bool consumer_probed_ = false;
  bool events_ = false;
};

}  // namespace hostwait::cai
