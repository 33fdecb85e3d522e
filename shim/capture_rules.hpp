// SPDX-License-Identifier: Apache-2.0
// Copyright The hostwait authors
// What a call does to a stream capture that is open. Pure, like the verdicts: tested against every
// measured row. The driver's answer decides afterwards; this says beforehand which captures it can
// be about.
#pragma once

#include "facts.hpp"
#include "row.hpp"

namespace hostwait {

// CUstreamCaptureMode, of a capture or of a thread.
enum capture_mode : std::uint8_t { capture_global, capture_thread_local, capture_relaxed };

enum class capture_effect : std::uint8_t { none, may_break, breaks };

// One open capture, as seen from a call.
struct capture_view {
  capture_mode mode = capture_global;
  bool of_this_thread = false;
  bool on_stream = false;        // the call runs on, or asks about, the capture's origin stream
  bool on_some_capture = false;  // on a stream that is captured, by which capture is not known
  bool blocking = false;         // the origin is known to be ordered with the legacy stream
};

// `thread_mode`: what cuThreadExchangeStreamCaptureMode set for the calling thread.
capture_effect effect_on_capture(row_id row, const call_facts& facts, const capture_view& capture,
                                 capture_mode thread_mode) noexcept;

// Whether a driver's answer says that the call broke a capture: not one of a capture that was
// broken before, nor of an end that does not fit its begin.
bool result_breaks_capture(int result) noexcept;

}  // namespace hostwait
