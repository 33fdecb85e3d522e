// SPDX-License-Identifier: Apache-2.0
// Copyright The hostwait authors
// Documented: cuThreadExchangeStreamCaptureMode's three rules, waits and queries on captured work,
// implicit order with the legacy stream. Measured on an H200 (docs/measurements): in every mode a
// wait for the context breaks the capture, and so do waits for and queries of its stream;
// cuMemAlloc and waits and queries of other streams break it where the modes forbid them; a waiting
// copy leaves the capture of a non-blocking stream alone.
#include "capture_rules.hpp"

#include <cuda.h>

#include "classify.hpp"

namespace hostwait {

namespace {

// Whether the calling thread may make calls that are "potentially unsafe".
bool forbidden(const capture_view& capture, capture_mode thread_mode) {
  if (thread_mode == capture_relaxed) return false;
  if (capture.of_this_thread) return capture.mode != capture_relaxed;
  return capture.mode == capture_global && thread_mode == capture_global;
}

// Work on the legacy stream would depend on captured work of a blocking stream. Whether a stream
// blocks is not among the arguments.
capture_effect implicit_order(const call_facts& facts, const capture_view& capture) {
  if (verdict_of_own_stream(facts) != HOSTWAIT_VERDICT_LEGACY) return capture_effect::none;
  return capture.blocking ? capture_effect::breaks : capture_effect::may_break;
}

}  // namespace

capture_effect effect_on_capture(row_id row, const call_facts& facts, const capture_view& capture,
                                 capture_mode thread_mode) noexcept {
  using effect = capture_effect;
  const bool unsafe = forbidden(capture, thread_mode);
  switch (rows[row].rule) {
    case rule_id::context:
      return effect::breaks;
    case rule_id::stream:
    case rule_id::query:
    case rule_id::event:
      if (capture.on_stream || unsafe) return effect::breaks;
      // Which stream an event was recorded on is not among the arguments.
      if (!facts.has_stream || capture.on_some_capture) return effect::may_break;
      return implicit_order(facts, capture);
    case rule_id::alloc:
      if (facts.has_stream || !unsafe) return effect::none;
      return row == row_cuMemAlloc || row == row_cuMemAlloc_v2 ? effect::breaks : effect::may_break;
    case rule_id::free:
    case rule_id::release:
      return unsafe && facts.destination.address != nullptr ? effect::may_break : effect::none;
    case rule_id::module:
    case rule_id::lazy_load:
    case rule_id::limit:
    case rule_id::reset:
    case rule_id::unmeasured:
      return unsafe ? effect::may_break : effect::none;
    case rule_id::copy_sync:
    case rule_id::memset_sync:
      return capture.on_stream ? effect::breaks : implicit_order(facts, capture);
    case rule_id::copy_device:
    case rule_id::copy_peer:
      if (!facts.has_stream && capture.on_stream) return effect::breaks;
      return implicit_order(facts, capture);
    case rule_id::copy_async:
    case rule_id::copy_batch:
    case rule_id::enqueue:
    case rule_id::launch:
    case rule_id::graph_launch:
      return implicit_order(facts, capture);
    default:
      return effect::none;
  }
}

bool result_breaks_capture(int result) noexcept {
  switch (result) {
    case CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED:
    case CUDA_ERROR_STREAM_CAPTURE_MERGE:
    case CUDA_ERROR_STREAM_CAPTURE_ISOLATION:
    case CUDA_ERROR_STREAM_CAPTURE_IMPLICIT:
    case CUDA_ERROR_CAPTURED_EVENT:
      return true;
    default:
      return false;
  }
}

}  // namespace hostwait
