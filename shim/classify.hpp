// SPDX-License-Identifier: Apache-2.0
// Copyright The hostwait authors
// The verdict: before the call, from its facts, which work would it wait for? Pure functions, no
// input or output, no CUDA call, so that every measured row can be tested without a driver.
#pragma once

#include "facts.hpp"
#include "row.hpp"
#include "rules.hpp"

namespace hostwait {

// DEPENDS names with its reason what decides: STAGING_LIMIT and QUEUE_DEPTH can wait for the
// call's own stream only, LAZY_LOAD for every stream. UNMEASURED is to be treated like DEPENDS.
// A verdict that waits keeps its value when a capture is open somewhere in the process and gets
// the reason CAPTURE: the call may then fail, and invalidate that capture, instead of waiting.
// So do queries, whose verdict is NONE.
struct judgement {
  hostwait_verdict verdict = HOSTWAIT_VERDICT_NONE;
  hostwait_reason reason = HOSTWAIT_REASON_NONE;
  hostwait_direction direction = HOSTWAIT_DIRECTION_NONE;
  hostwait_memory source = HOSTWAIT_MEMORY_UNKNOWN;
  hostwait_memory destination = HOSTWAIT_MEMORY_UNKNOWN;
};

// What the process knows besides the arguments.
struct surroundings {
  bool capture_on_stream = false;  // the call's stream is known to be capturing
  bool capture_open = false;       // some capture is open in the process
  bool launch_blocking = false;    // CUDA_LAUNCH_BLOCKING=1
  bool new_function = false;       // the kernel is not known to have been launched before
  bool sync_memops = false;        // an end has CU_POINTER_ATTRIBUTE_SYNC_MEMOPS
  int driver_version = 0;          // cuDriverGetVersion, 0 = unknown
  int compute_capability = 0;      // 10 * major + minor of the call's device, 0 = unknown
  // Calls enqueued by this process since it last knew its device to be idle: an upper bound of
  // the queue's depth. Counted only while queue_full is armed.
  std::uint32_t queued_since_idle = queued_unknown;
  // Pageable uploads that travel in the queue may be among them: they take more room.
  bool inline_copies_queued = true;

  static constexpr std::uint32_t queued_unknown = 0xffffffffu;
};

// Where the measured rules hold; an unknown driver or device counts as inside. Outside it they
// give UNMEASURED. Rulings that NVIDIA's reference documents hold everywhere.
struct domain {
  int driver_major = 13;  // CUDA version of the driver: 13000 / 1000
  int compute_capability = 90;
  constexpr bool holds(const surroundings& now) const noexcept {
    return (now.driver_version == 0 || now.driver_version / 1000 == driver_major) &&
           (now.compute_capability == 0 || now.compute_capability == compute_capability);
  }
};
inline constexpr domain measured_domain{};

// Which ends of the call classify() wants to know the memory kind of; each costs one pointer
// query. Nothing is asked where the verdict does not need it, and never about a null pointer.
struct pointer_needs {
  bool source = false, destination = false;
};
pointer_needs needs_of(row_id row, const call_facts& facts) noexcept;

judgement classify(row_id row, const call_facts& facts, hostwait_memory source,
                   hostwait_memory destination, const surroundings& now) noexcept;

// STREAM, or LEGACY where the call runs on the legacy stream.
hostwait_verdict verdict_of_own_stream(const call_facts& facts) noexcept;

// The same by rule.
pointer_needs needs_of(rule_id rule, const call_facts& facts) noexcept;
judgement classify(rule_id rule, const call_facts& facts, hostwait_memory source,
                   hostwait_memory destination, const surroundings& now) noexcept;

// What the call may take by itself on an idle GPU; time beyond it counts as waiting. The base and
// the rate come from the options. `managed`: one end is known to be managed memory.
std::uint64_t own_cost_ns(row_id row, const call_facts& facts, std::uint64_t base_us = 120,
                          std::uint64_t gb_per_s = 1, bool managed = false) noexcept;

// False for kinds whose own cost cannot be told from the arguments (allocation, loading, context
// set-up): their time is shown as time in the call, never as waiting.
bool own_cost_known(row_id row) noexcept;

inline bool touches_managed(const judgement& judged) noexcept {
  return judged.source == HOSTWAIT_MEMORY_MANAGED || judged.destination == HOSTWAIT_MEMORY_MANAGED;
}

}  // namespace hostwait
