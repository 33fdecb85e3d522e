// SPDX-License-Identifier: Apache-2.0
// Copyright The hostwait authors
// Planning. The only driver calls here are questions that leave every capture intact; the hooks and
// the two policies that wait for a device are the exceptions that their contracts name.
#include "plan.hpp"

#include "env.hpp"
#include "shim.hpp"

namespace hostwait::cai {

int planner::add_other(const hostwait_cai_ready& ready, int32_t index) {
  counters& count = session_.thread->count;
  if (ready.kind == HOSTWAIT_CAI_READY_NOW) {
    hostwait::cai::add(count.ready_now);
    return HOSTWAIT_CAI_OK;
  }
  if (ready.kind == HOSTWAIT_CAI_READY_STREAM && ready.stream == 0) {
    return fail(session_.sink, HOSTWAIT_CAI_ERR_STREAM_ZERO, "stream", -1,
                "stream 0 is ambiguous: 1 is the legacy, 2 the per-thread default stream");
  }
  if (!sync_wanted(policy_)) return opt_out(ready, index);
  switch (ready.kind) {
    case HOSTWAIT_CAI_READY_EVENT:
      return add_event(ready);
    case HOSTWAIT_CAI_READY_UNKNOWN:
      return add_unknown(ready);
    default:
      return fail(session_.sink, HOSTWAIT_CAI_ERR_INVALID, "", -1, "unknown kind of readiness");
  }
}

// An order that nobody wants. Where someone listens, the stream is asked whether work was pending:
// then two libraries disagree about who is to wait.
int planner::opt_out(const hostwait_cai_ready& ready, int32_t index) {
  counters& count = session_.thread->count;
  hostwait::cai::add(count.opt_outs);
  const hostwait_cai_hooks* hooks = policy_.hooks;
  const bool listening = hooks != nullptr && hooks->audit != nullptr;
  if (ready.kind != HOSTWAIT_CAI_READY_STREAM || ready.stream == consumer_.stream ||
      !(listening || hostwait_present())) {
    return HOSTWAIT_CAI_OK;
  }
  uint64_t context = 0;
  stream_ref stream{};
  capture_state capture;
  // An audit that cannot be made is no failure of the call.
  session quiet = session_;
  quiet.sink.target = nullptr;
  if (ready.stream <= HOSTWAIT_CAI_PER_THREAD && quiet.data_context(ready, &context) != 0) return 0;
  if (quiet.name(ready.stream, context, &stream) != 0 || quiet.probe(stream, &capture) != 0 ||
      capture.status != capture_state::none) {
    return HOSTWAIT_CAI_OK;
  }
  const in_context scope(session_, stream.context);
  const relaxed_capture_mode relaxed(*session_.driver);
  if (session_.driver->stream_query(handle(stream.stream)) != cu_not_ready) return HOSTWAIT_CAI_OK;
  hostwait::cai::add(count.opt_outs_pending);
  hostwait_audit("exchange: order opted out of, work pending");
  if (listening) {
    const hostwait_cai_audit audit{sizeof audit, index, ready.stream, consumer_.stream};
    hooks->audit(hooks->user, &audit);
  }
  return HOSTWAIT_CAI_OK;
}

// Where the thread has no context, the consumer's 1 and 2 are those of the data's context, or of
// the producer's stream.
[[gnu::always_inline]] inline int planner::probe_consumer(const hostwait_cai_ready& ready,
                                                          uint64_t producer_context) {
  if (consumer_probed_ || for_host()) return HOSTWAIT_CAI_OK;
  if (consumer_.context == 0 && consumer_.stream <= HOSTWAIT_CAI_PER_THREAD) {
    consumer_.context = producer_context;
    if (producer_context == 0) {
      if (const int code = session_.data_context(ready, &consumer_.context)) return code;
    }
  }
  if (!(policy_.options & HOSTWAIT_CAI_TRUST_NO_CAPTURE)) {
    if (const int code = session_.probe(consumer_, &consumer_capture_)) return code;
  }
  consumer_probed_ = true;
  return HOSTWAIT_CAI_OK;
}

// Producer and consumer are not in one capture: the policy decides. OK means "drop this edge", or,
// for an external event, that it was added.
int planner::boundary(const stream_ref* producer, const capture_state& capture) {
  counters& count = session_.thread->count;
  if (policy_.capture == HOSTWAIT_CAI_CAPTURE_ASSUME_READY) {
    hostwait::cai::add(count.capture_assumed);
    return HOSTWAIT_CAI_OK;
  }
  if (policy_.capture == HOSTWAIT_CAI_CAPTURE_EXTERNAL_EVENT && producer != nullptr &&
      consumer_captures() && capture.status == capture_state::none) {
    return keep(*producer, edge_external_pending);
  }
  hostwait::cai::add(count.capture_refused);
  if (capture.status == capture_state::implicit ||
      consumer_capture_.status == capture_state::implicit) {
    return fail(session_.sink, HOSTWAIT_CAI_ERR_CAPTURE_LEGACY, "stream", -1,
                "the legacy stream cannot be used while a blocking stream captures");
  }
  if (for_host()) {
    return fail(session_.sink, HOSTWAIT_CAI_ERR_CAPTURE_HOST_SYNC, "stream", -1,
                "the host cannot wait for a stream that captures");
  }
  return fail(session_.sink, HOSTWAIT_CAI_ERR_CAPTURE_BOUNDARY, "stream", -1,
              "the producer's and the consumer's stream are not in the same capture");
}

[[gnu::always_inline]] inline int planner::judge_captures(const stream_ref& producer, bool* drop) {
  *drop = false;
  if (policy_.options & HOSTWAIT_CAI_TRUST_NO_CAPTURE) return HOSTWAIT_CAI_OK;
  capture_state capture;
  if (const int code = session_.probe(producer, &capture)) return code;
  if (capture.status == capture_state::invalidated ||
      consumer_capture_.status == capture_state::invalidated) {
    hostwait::cai::add(session_.thread->count.capture_refused);
    return fail(session_.sink, HOSTWAIT_CAI_ERR_CAPTURE_INVALIDATED, "stream", -1,
                "a stream's capture is already invalidated");
  }
  const bool both_free =
      capture.status == capture_state::none && consumer_capture_.status == capture_state::none;
  const bool one_capture = capture.status == capture_state::active && capture == consumer_capture_;
  if (both_free || one_capture) return HOSTWAIT_CAI_OK;
  *drop = true;
  return boundary(&producer, capture);
}

// The legacy stream and a blocking stream of one context wait for each other anyway, outside
// captures.
int planner::implied(const stream_ref& producer, bool* yes) {
  *yes = false;
  if (!(policy_.options & HOSTWAIT_CAI_TRUST_IMPLICIT) || for_host() || consumer_captures()) {
    return HOSTWAIT_CAI_OK;
  }
  const bool from_legacy = producer.stream == HOSTWAIT_CAI_LEGACY;
  const bool to_legacy = consumer_.stream == HOSTWAIT_CAI_LEGACY;
  if (from_legacy == to_legacy) return HOSTWAIT_CAI_OK;
  const stream_ref& legacy = from_legacy ? producer : consumer_;
  stream_ref other{};
  if (const int code = session_.name((from_legacy ? consumer_ : producer).stream,
                                     (from_legacy ? consumer_ : producer).context, &other)) {
    return code;
  }
  if (other.context != legacy.context) return HOSTWAIT_CAI_OK;
  return session_.is_blocking(other, yes);
}

[[gnu::always_inline]] inline int planner::keep(const stream_ref& stream, uint64_t marker) {
  if (has_edge(*ticket_, stream)) {
    for (uint32_t i = 0; i < ticket_->count; ++i) {
      hostwait_cai_edge& e = edge_at(*ticket_, i);
      // A wait that is due after all takes the place of a mere way back.
      if (e.stream == stream.stream && e.context == stream.context && e.event == edge_back_only) {
        e.event = marker;
      }
    }
    return HOSTWAIT_CAI_OK;
  }
  if (add_edge(ticket_, {stream.stream, stream.context, marker})) return HOSTWAIT_CAI_OK;
  return fail(session_.sink, HOSTWAIT_CAI_ERR_NO_MEMORY, "", -1, "out of memory");
}

int planner::add_stream(uint64_t stream, const hostwait_cai_ready& ready) {
  counters& count = session_.thread->count;
  if ((policy_.options & HOSTWAIT_CAI_CHECK_HANDLES) && stream > HOSTWAIT_CAI_PER_THREAD &&
      stream < 4096) {
    return fail(session_.sink, HOSTWAIT_CAI_ERR_STREAM_RANGE, "stream", -1,
                "%llu is no plausible handle", static_cast<unsigned long long>(stream));
  }
  if (stream == HOSTWAIT_CAI_PER_THREAD && (ready.flags & HOSTWAIT_CAI_READY_OTHER_THREAD)) {
    switch (policy_.ptds) {
      case HOSTWAIT_CAI_PTDS_JOIN:
        stream = HOSTWAIT_CAI_LEGACY;
        break;
      case HOSTWAIT_CAI_PTDS_DEVICE:
        return wait_for_device(ready);
      case HOSTWAIT_CAI_PTDS_REJECT:
        return fail(session_.sink, HOSTWAIT_CAI_ERR_PTDS_THREAD, "stream", -1,
                    "the per-thread stream of another thread cannot be named");
      default:
        break;
    }
  }
  if (stream == consumer_.stream && stream > HOSTWAIT_CAI_PER_THREAD) {
    hostwait::cai::add(count.elided);
    return HOSTWAIT_CAI_OK;
  }
  uint64_t context = 0;
  if (stream <= HOSTWAIT_CAI_PER_THREAD) {
    if (const int code = session_.data_context(ready, &context)) return code;
  }
  stream_ref producer{};
  if (const int code = session_.name_again(stream, context, &producer)) return code;
  if (const int code = probe_consumer(ready, producer.context)) return code;
  if (producer == consumer_) {
    hostwait::cai::add(count.elided);
    return HOSTWAIT_CAI_OK;
  }
  for (uint32_t i = 0; i < ticket_->count; ++i) {
    const hostwait_cai_edge& e = edge_at(*ticket_, i);
    if (e.stream == producer.stream && e.context == producer.context && e.event != edge_back_only) {
      return HOSTWAIT_CAI_OK;
    }
  }
  bool drop = false;
  if (const int code = judge_captures(producer, &drop); code != 0 || drop) return code;
  if (const int code = implied(producer, &drop)) return code;
  if (drop) {
    hostwait::cai::add(count.elided);
    return HOSTWAIT_CAI_OK;
  }
  return keep(producer, 0);
}

int planner::add_event(const hostwait_cai_ready& ready) {
  if (ready.event == 0) return HOSTWAIT_CAI_OK;
  events_ = true;
  if (const int code = probe_consumer(ready)) return code;
  if (consumer_capture_.status == capture_state::none) return HOSTWAIT_CAI_OK;
  if (consumer_capture_.status == capture_state::invalidated) {
    return fail(session_.sink, HOSTWAIT_CAI_ERR_CAPTURE_INVALIDATED, "stream", -1,
                "the consumer's capture is already invalidated");
  }
  if (policy_.capture == HOSTWAIT_CAI_CAPTURE_EXTERNAL_EVENT && consumer_captures()) return 0;
  return boundary(nullptr, {});
}

bool planner::waits_for_event(const hostwait_cai_ready& ready, unsigned* flags) const {
  *flags = 0;
  if (ready.kind != HOSTWAIT_CAI_READY_EVENT || ready.event == 0 || !sync_wanted(policy_)) {
    return false;
  }
  if (consumer_capture_.status == capture_state::none) return true;
  *flags = cu_wait_external;
  return consumer_captures() && policy_.capture == HOSTWAIT_CAI_CAPTURE_EXTERNAL_EVENT;
}

// Blocks the host, because the policy says so; where a policy of the process refuses that, the
// legacy stream is joined instead.
int planner::wait_for_device(const hostwait_cai_ready& ready) {
  if (const int code = probe_consumer(ready)) return code;
  if (consumer_captures()) return boundary(nullptr, {});
  uint64_t context = 0;
  if (const int code = session_.data_context(ready, &context)) return code;
  hostwait_action action;
  if (!host_wait_allowed(HOSTWAIT_DEVICE_SYNC, &action)) {
    return add_stream(HOSTWAIT_CAI_LEGACY, ready);
  }
  capture_state legacy;
  if (const int code = session_.probe({HOSTWAIT_CAI_LEGACY, context}, &legacy)) return code;
  if (legacy.status != capture_state::none) return boundary(nullptr, legacy);
  {
    const in_context scope(session_, context);
    if (scope.result() != cu_success) {
      return driver_failure(session_.sink, scope.result(), "cuCtxPushCurrent");
    }
    const relaxed_capture_mode relaxed(*session_.driver);
    const exchange_label label(action, HOSTWAIT_DEVICE_SYNC);
    const int result = session_.driver->ctx_synchronize();
    if (result != cu_success) return driver_failure(session_.sink, result, "cuCtxSynchronize");
  }
  hostwait::cai::add(session_.thread->count.host_waits);
  return add_back_only(HOSTWAIT_CAI_LEGACY, ready);
}

// The producer did the ordering, or the host waited; the way back is still owed.
int planner::add_back_only(uint64_t stream, const hostwait_cai_ready& ready) {
  if (for_host() || !way_back_ || consumer_captures()) return HOSTWAIT_CAI_OK;
  uint64_t context = 0;
  if (stream <= HOSTWAIT_CAI_PER_THREAD) {
    if (const int code = session_.data_context(ready, &context)) return code;
  }
  stream_ref producer{};
  if (const int code = session_.name(stream, context, &producer)) return code;
  if (producer == consumer_ || has_edge(*ticket_, producer)) return HOSTWAIT_CAI_OK;
  return keep(producer, edge_back_only);
}

int planner::add_after_dlpack(const hostwait_cai_ready& ready, bool current_known,
                              uint64_t current) {
  session_.forget_current();
  // A host consumer let the producer order the legacy stream, and waits for that.
  if (for_host() || (ready.flags & HOSTWAIT_CAI_READY_IGNORES_STREAM)) {
    return add_stream(HOSTWAIT_CAI_LEGACY, ready);
  }
  const hostwait_cai_hooks& hooks = *policy_.hooks;
  if (!current_known && hooks.producer_current != nullptr &&
      hooks.producer_current(hooks.user, &ready, &current) != 1) {
    current = 0;
  }
  return add_back_only(current != 0 ? current : HOSTWAIT_CAI_LEGACY, ready);
}

int planner::add_unknown(const hostwait_cai_ready& ready) {
  counters& count = session_.thread->count;
  if (const int code = probe_consumer(ready)) return code;
  const hostwait_cai_hooks* hooks = policy_.hooks;
  bool current_known = false;
  uint64_t current = 0;
  for (const uint8_t step : policy_.legacy) {
    if (step == HOSTWAIT_CAI_LEGACY_END) break;
    switch (step) {
      case HOSTWAIT_CAI_LEGACY_PRODUCER_CURRENT: {
        if (hooks == nullptr || hooks->producer_current == nullptr) break;
        const int answer = hooks->producer_current(hooks->user, &ready, &current);
        session_.forget_current();
        if (answer < 0) {
          return fail(session_.sink, HOSTWAIT_CAI_ERR_CALLBACK, "", -1, "producer_current failed");
        }
        current_known = true;
        if (answer == 0 || current == 0) {
          current = 0;
          break;
        }
        hostwait::cai::add(count.legacy_producer_current);
        return add_stream(current, ready);
      }
      case HOSTWAIT_CAI_LEGACY_VIA_DLPACK: {
        if (hooks == nullptr || hooks->via_dlpack == nullptr) break;
        if (consumer_captures() && !(ready.flags & HOSTWAIT_CAI_READY_DLPACK_IN_CAPTURE)) {
          return boundary(nullptr, {});
        }
        const int answer = hooks->via_dlpack(hooks->user, &ready,
                                             for_host() ? HOSTWAIT_CAI_LEGACY : consumer_.stream);
        if (answer < 0) {
          return fail(session_.sink, HOSTWAIT_CAI_ERR_CALLBACK, "", -1, "via_dlpack failed");
        }
        if (answer == 0) {
          session_.forget_current();
          break;
        }
        hostwait::cai::add(count.legacy_via_dlpack);
        return add_after_dlpack(ready, current_known, current);
      }
      case HOSTWAIT_CAI_LEGACY_JOIN:
        // The legacy stream is in no capture: known without touching it.
        if (consumer_captures()) return boundary(nullptr, {});
        hostwait::cai::add(count.legacy_join);
        return add_stream(HOSTWAIT_CAI_LEGACY, ready);
      case HOSTWAIT_CAI_LEGACY_DEVICE:
        hostwait::cai::add(count.legacy_device);
        return wait_for_device(ready);
      case HOSTWAIT_CAI_LEGACY_NONE:
        hostwait::cai::add(count.legacy_none);
        return HOSTWAIT_CAI_OK;
      default:
        return fail(session_.sink, HOSTWAIT_CAI_ERR_INVALID, "", -1, "unknown policy in `legacy`");
    }
  }
  return HOSTWAIT_CAI_OK;
}

}  // namespace hostwait::cai
