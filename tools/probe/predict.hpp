// SPDX-License-Identifier: Apache-2.0
// Copyright The hostwait authors
// What a verdict says about the host while a kernel runs on some stream: the one place where
// verdicts are compared with measurements, for the live probe and for stored tables.
#pragma once

#include "classify.hpp"

namespace hostwait::probe {

// The streams of an experiment. `blocking` and `nonblocking` carry the kernel where the
// experiment says so; the other two of their kind are idle.
enum class stream_kind : unsigned char {
  none,
  legacy,
  blocking,
  nonblocking,
  per_thread,
  other_blocking,
  other_nonblocking,
};

enum class prediction : unsigned char { free, blocked, depends };

inline bool in_legacy_scope(stream_kind busy) {
  return busy == stream_kind::legacy || busy == stream_kind::blocking ||
         busy == stream_kind::per_thread;
}

// Whether work on `busy` holds up what is queued on `own`: streams that block wait for the legacy
// one.
inline bool in_scope(stream_kind busy, stream_kind own) {
  if (busy == stream_kind::none) return false;
  if (own == busy) return true;
  return busy == stream_kind::legacy &&
         (own == stream_kind::blocking || own == stream_kind::per_thread ||
          own == stream_kind::other_blocking);
}

// `own` is the stream of the call, or the one where the event that it waits for was recorded;
// none: nothing is queued there. The kernel runs on `busy`.
inline prediction predict(const judgement& j, stream_kind own, stream_kind busy) {
  const bool of_legacy = own == stream_kind::legacy;
  switch (j.verdict) {
    case HOSTWAIT_VERDICT_NONE:
      return prediction::free;
    case HOSTWAIT_VERDICT_CONTEXT:
      return busy == stream_kind::none ? prediction::free : prediction::blocked;
    case HOSTWAIT_VERDICT_LEGACY:
      return in_legacy_scope(busy) ? prediction::blocked : prediction::free;
    case HOSTWAIT_VERDICT_STREAM:
      return in_scope(busy, own) ? prediction::blocked : prediction::free;
    default:
      break;
  }
  const bool own_stream_only =
      j.reason == HOSTWAIT_REASON_STAGING_LIMIT || j.reason == HOSTWAIT_REASON_QUEUE_DEPTH;
  const bool reached = of_legacy ? in_legacy_scope(busy) : in_scope(busy, own);
  return own_stream_only && !reached ? prediction::free : prediction::depends;
}

}  // namespace hostwait::probe
