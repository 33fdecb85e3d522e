// SPDX-License-Identifier: Apache-2.0
// Copyright The hostwait authors
// Rows of type `state`: captures, the thread's capture mode, the profiler range; and the finding
// that a call has broken a capture.
#include <cuda.h>

#include <cstring>

#include "captures.hpp"
#include "entry.hpp"
#include "python_site.hpp"
#include "ranges.hpp"

namespace hostwait::entry {

namespace {

bool begins_capture(row_id row) noexcept {
  switch (row) {
    case row_cuStreamBeginCapture:
    case row_cuStreamBeginCapture_ptsz:
    case row_cuStreamBeginCapture_v2:
    case row_cuStreamBeginCapture_v2_ptsz:
    case row_cuStreamBeginCaptureToGraph:
    case row_cuStreamBeginCaptureToGraph_ptsz:
      return true;
    default:
      return false;
  }
}

int note_begin(row_id row, const call_facts& facts, const unwind::registers& caller) noexcept {
  captures::beginning b;
  b.key = captures::key_of(facts.stream, facts.per_thread);
  b.stream = facts.stream != 0 ? facts.stream : facts.per_thread ? 2 : 1;
  b.mode = static_cast<capture_mode>(facts.aux);
  if (record::ensure_open()) {
    record::thread_writer* const writer = record::this_thread();
    const record::thread_identity me = record::identity_of_thread(writer);
    b.tid = me.tid;
    std::memcpy(b.thread, me.name, sizeof b.thread);
    call_context call;
    call.row = row;
    call.in_capture = false;
    call.facts = facts;
    call.verdict = {};
    call.caller = caller;
    site_storage storage;
    b.site = record::site_of(writer, key_of(call, storage));
  }
  b.mono_ns = now_ns();
  return captures::begin(b);
}

// An invalidated capture ends with an error; it is over all the same. These leave it open.
bool end_leaves_open(int result) noexcept {
  return result == CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD ||
         result == CUDA_ERROR_STREAM_CAPTURE_UNMATCHED || result == CUDA_ERROR_INVALID_VALUE;
}

}  // namespace

int before_state(row_id row, const call_facts& facts, const unwind::registers& caller) noexcept {
  return begins_capture(row) ? note_begin(row, facts, caller) : 0;
}

void after_state(row_id row, const call_facts& facts, int result, int noted) noexcept {
  if (begins_capture(row)) {
    if (result != CUDA_SUCCESS) captures::withdraw(noted);
    return;
  }
  switch (row) {
    case row_cuStreamEndCapture:
    case row_cuStreamEndCapture_ptsz:
      if (!end_leaves_open(result)) captures::end(captures::key_of(facts.stream, facts.per_thread));
      break;
    case row_cuThreadExchangeStreamCaptureMode:
      if (result == CUDA_SUCCESS) state::tls.capture_mode = static_cast<std::uint8_t>(facts.aux);
      break;
    case row_cuCtxCreate:
    case row_cuCtxCreate_v2:
    case row_cuCtxCreate_v3:
    case row_cuCtxCreate_v4:
    case row_cuDevicePrimaryCtxRetain:
      if (result == CUDA_SUCCESS) queues::context_seen(facts.aux);
      break;
    case row_cuProfilerStart:
      state::profiler_range(true);
      break;
    case row_cuProfilerStop:
      state::profiler_range(false);
      break;
    default:
      break;  // modes of waiting: seen, nothing to keep
  }
}

bool note_capture(const call_context& call, int result, bool refused, bool violation) noexcept {
  std::uint64_t broken = call.captures.breaks;
  bool guess = false;
  if (!refused) {
    if (!result_breaks_capture(result) || !captures::any_open()) return false;
    broken = captures::broken_by(call.captures, call.start_ns, guess);
    // Nothing left: they were broken before. Nothing known at all: told without a begin.
    if (broken == 0 && call.captures.any()) return false;
  }
  if (refused && broken == 0) return false;
  site_storage storage;
  hostwait_record_capture seen = {};
  seen.site = record::site_of(call.writer, key_of(call, storage));
  const record::thread_identity me = record::identity_of_thread(call.writer);
  seen.tid = me.tid;
  std::memcpy(seen.thread, me.name, sizeof seen.thread);
  seen.result = refused ? 0 : result;
  seen.mono_ns = now_ns();
  seen.count = 1;
  seen.violations = violation ? 1 : 0;
  std::uint64_t left = broken;
  do {
    const unsigned which = left != 0 ? static_cast<unsigned>(__builtin_ctzll(left)) : 0;
    const std::uint64_t bit = left & -left;
    const captures::beginning b = bit != 0 ? captures::at(which) : captures::beginning{};
    seen.begin_site = b.site;
    seen.begin_tid = b.tid;
    std::memcpy(seen.begin_thread, b.thread, sizeof seen.begin_thread);
    seen.mode = b.mode;
    seen.begin_mono_ns = b.mono_ns;
    seen.stream = b.stream;
    seen.flags =
        (refused ? std::uint32_t{HOSTWAIT_CAPTURE_REFUSED} : 0) |
        (guess ? std::uint32_t{HOSTWAIT_CAPTURE_POSSIBLE} : 0) |
        ((call.captures.on_stream & bit) != 0 ? std::uint32_t{HOSTWAIT_CAPTURE_ON_STREAM} : 0);
    record::note_capture(seen);
    left &= left - 1;
  } while (left != 0);
  return true;
}

}  // namespace hostwait::entry
