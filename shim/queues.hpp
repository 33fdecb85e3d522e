// SPDX-License-Identifier: Apache-2.0
// Copyright The hostwait authors
// How much the process has queued, as far as it knows: counted only while queue_full is armed, and
// nothing is asked of the driver. The counts are upper bounds: what was queued since the stream, or
// the only context, was last known to be idle.
#pragma once

#include <cstdint>

#include "classify.hpp"
#include "policy.hpp"

namespace hostwait::queues {

bool counted() noexcept;  // queue_full is armed, and no enqueue call has escaped the count

// What a call is about to add, and what was there before. Taken before the driver's call, given
// back to done() after it.
struct mark {
  bool counted;             // false: nothing else is set
  bool own_stream_idle;     // nothing is queued on the call's stream
  bool new_function;        // the kernel has not been launched, as far as is known
  bool inline_copies;       // some of it are uploads that travel in the queue
  std::uint32_t queued;     // on all streams
  std::uint64_t key;        // of the call's stream
  std::uint64_t on_stream;  // number of the newest work before the call
  std::uint64_t total;      // the same over all streams
};
void before(row_id row, const call_facts& facts, hostwait_memory source, bool capturing,
            mark& m) noexcept;
// After a call that succeeded: a wait for a stream or for the context has emptied it.
void after(row_id row, const call_facts& facts, hostwait_verdict verdict, const mark&) noexcept;

// A thread's new decisions: what it is allowed is not seen, and so not counted.
void look_at(policy::action_set effective) noexcept;
// A context was made (0) or retained (its device's number, plus one): with more than one, a wait
// for one says nothing about the rest.
void context_seen(std::uint64_t device_plus_1) noexcept;

}  // namespace hostwait::queues
