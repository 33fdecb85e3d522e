// SPDX-License-Identifier: Apache-2.0
// Copyright The hostwait authors
// The producer's side: one exported stream that stands for all pending work (R16).
#include "env.hpp"
#include "session.hpp"

namespace hostwait::cai {
namespace {

int check(const hostwait_cai_export& request, int version, const error_sink& sink) {
  for (size_t i = 0; i < request.pending_count; ++i) {
    if (request.pending[i].value == 0) {
      return fail(sink, HOSTWAIT_CAI_ERR_STREAM_ZERO, "stream", static_cast<int32_t>(i),
                  "stream 0 is ambiguous: 1 is the legacy, 2 the per-thread default stream");
    }
  }
  const bool silent = (request.flags & HOSTWAIT_CAI_EXPORT_NONE) || version == 2;
  if (silent) {
    // Version 2 by the environment is the user's explicit wish.
    if (request.pending_count > 0 && !(request.flags & HOSTWAIT_CAI_EXPORT_OPT_OUT) &&
        (request.version == 2 || (request.flags & HOSTWAIT_CAI_EXPORT_NONE))) {
      return fail(sink, HOSTWAIT_CAI_ERR_PENDING, "stream", -1,
                  "work is pending, so the stream must be exported");
    }
    return HOSTWAIT_CAI_OK;
  }
  if (request.chosen.value == 0) {
    return fail(sink, HOSTWAIT_CAI_ERR_STREAM_ZERO, "stream", -1,
                "stream 0 is ambiguous: 1 is the legacy, 2 the per-thread default stream");
  }
  if (request.stream_owner == nullptr && !(request.flags & HOSTWAIT_CAI_EXPORT_KEPT)) {
    return fail(sink, HOSTWAIT_CAI_ERR_STREAM_OWNER, "stream", -1,
                "nothing keeps the exported stream alive: give its owner, or promise it");
  }
  return HOSTWAIT_CAI_OK;
}

int join(session& s, const hostwait_cai_export& request) {
  stream_ref chosen{};
  if (const int code = s.name(request.chosen.value, s.current(), &chosen)) return code;
  capture_state capture;
  if (const int code = s.probe(chosen, &capture)) return code;
  if (capture.status != capture_state::none && !(request.flags & HOSTWAIT_CAI_EXPORT_CAPTURING)) {
    return fail(s.sink,
                capture.status == capture_state::implicit ? HOSTWAIT_CAI_ERR_CAPTURE_LEGACY
                                                          : HOSTWAIT_CAI_ERR_CAPTURE_BOUNDARY,
                "stream", -1, "a capturing stream would outlive its capture in a foreign library");
  }
  // First all questions, then the joins.
  for (int pass = 0; pass < 2; ++pass) {
    for (size_t i = 0; i < request.pending_count; ++i) {
      bool seen = request.pending[i].value == request.chosen.value;
      for (size_t k = 0; k < i && !seen; ++k) {
        seen = request.pending[k].value == request.pending[i].value;
      }
      if (seen) continue;
      stream_ref other{};
      if (const int code = s.name(request.pending[i].value, s.current(), &other)) return code;
      if (pass == 0) {
        capture_state state;
        if (const int code = s.probe(other, &state)) return code;
        if (state == capture) continue;
        return fail(s.sink,
                    state.status == capture_state::implicit ? HOSTWAIT_CAI_ERR_CAPTURE_LEGACY
                                                            : HOSTWAIT_CAI_ERR_CAPTURE_BOUNDARY,
                    "stream", static_cast<int32_t>(i),
                    "the pending streams are not in the same capture");
      }
      const bool captured = capture.status == capture_state::active;
      const auto kind = captured ? edge_kind::capture : edge_kind::there;
      uint64_t event = 0;
      if (const int code = s.mark(&other, kind, false, &event)) return code;
      if (const int code = s.wait(chosen, event, 0)) return code;
      add(s.thread->count.waits);
    }
  }
  return HOSTWAIT_CAI_OK;
}

}  // namespace
}  // namespace hostwait::cai

using namespace hostwait::cai;

int hostwait_cai_export_prepare(const hostwait_cai_export* request, hostwait_cai_exported* out,
                                hostwait_cai_error* err) {
  clear(err);
  const error_sink sink{err};
  if (request == nullptr || out == nullptr || request->size < sizeof *request ||
      (request->pending == nullptr && request->pending_count > 0)) {
    return fail(sink, HOSTWAIT_CAI_ERR_INVALID, "", -1, "bad arguments");
  }
  HOSTWAIT_CAI_INIT(*out);
  out->version = request->version != 0 ? request->version : env_export_version();
  if (out->version != 2 && out->version != 3) {
    return fail(sink, HOSTWAIT_CAI_ERR_VERSION, "version", -1, "only 2 and 3 can be exported");
  }
  if (const int code = check(*request, out->version, sink)) return code;
  if ((request->flags & HOSTWAIT_CAI_EXPORT_NONE) || out->version == 2) {
    if (request->pending_count > 0) {
      if (thread_state* thread = this_thread()) add(thread->count.opt_outs);
    }
    out->stream_state = out->version == 2 ? HOSTWAIT_CAI_STREAM_ABSENT : HOSTWAIT_CAI_STREAM_NONE;
    return HOSTWAIT_CAI_OK;
  }
  session s;
  if (const int code = s.open(err)) return code;
  if (const int code = join(s, *request)) return code;
  out->stream_state = HOSTWAIT_CAI_STREAM_VALUE;
  out->stream = request->chosen.value;
  return HOSTWAIT_CAI_OK;
}
