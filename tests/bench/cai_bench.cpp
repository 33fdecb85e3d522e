// SPDX-License-Identifier: Apache-2.0
// Copyright The hostwait authors
// Costs of the exchange library, as ratios to the driver's own calls in the same run. One JSON
// object a line; medians over rounds that take turns. With the argument "quick" each call is made a
// few times only, for tools that check memory. "own N" makes N handshakes on a driver whose calls
// do nothing, without a GPU, for tools that count instructions.
#include <hostwait/cai.h>

#include <cstring>

#include "cai/support/driver_api.hpp"

namespace {

int rounds = 11;
// Below the depth of a stream's queue, so that no enqueue waits for the device.
constexpr int batch = 200;
int batches = 25;
// Of the comparisons, see handshake().
int compared_rounds = 31;

uint64_t value(const void* handle) {
  return reinterpret_cast<uint64_t>(handle);
}

void check(int code, const hostwait_cai_error& err) {
  if (code == HOSTWAIT_CAI_OK) return;
  fprintf(stderr, "%s: %s\n", hostwait_cai_code_name(code), err.text);
  exit(1);
}

// Microseconds for a batch; the streams are emptied after it, outside the time.
template <typename Function>
double one_batch(Function&& call) {
  const auto begin = gpu::clock::now();
  for (int i = 0; i < batch; ++i) call();
  const double taken = gpu::microseconds_since(begin);
  gpu::synchronize_all();
  return taken;
}

double ns_per_call(double microseconds) {
  return microseconds * 1000 / (batches * batch);
}

template <typename Function>
double per_call(Function&& call) {
  double total = 0;
  for (int b = 0; b < batches; ++b) total += one_batch(call);
  return ns_per_call(total);
}

template <typename Function>
void measure(const char* name, Function&& call) {
  std::vector<double> ns;
  per_call(call);
  for (int r = 0; r < rounds; ++r) ns.push_back(per_call(call));
  gpu::report(name, ns, "ns");
}

hostwait_cai_ready behind(CUstream stream, CUcontext context) {
  hostwait_cai_ready r;
  HOSTWAIT_CAI_INIT(r);
  r.kind = HOSTWAIT_CAI_READY_STREAM;
  r.stream = value(stream);
  r.device = 0;
  r.context = value(context);
  return r;
}

// The clock of a shared machine drifts by more than what is measured. So batches of the bare pairs
// and of ours take turns, each second turn the other way round, and a round's ratio is that of its
// two sums.
void handshake(const std::string& name, const hostwait_cai_ready& in, CUstream producer,
               CUstream consumer, const hostwait_cai_policy* policy) {
  hostwait_cai_error err;
  HOSTWAIT_CAI_INIT(err);
  const CUevent there = gpu::new_event(), back = gpu::new_event();
  const auto record = CU(cuEventRecord);
  const auto wait = CU(cuStreamWaitEvent);
  const auto bare = [&] {
    MUST(record(there, producer));
    MUST(wait(consumer, there, 0));
    MUST(record(back, consumer));
    MUST(wait(producer, back, 0));
  };
  const auto ours = [&] {
    hostwait_cai_ticket ticket;
    check(hostwait_cai_acquire(&in, 1, {value(consumer)}, policy, &ticket, &err), err);
    check(hostwait_cai_release(&ticket, &err), err);
  };
  per_call(bare);
  per_call(ours);
  std::vector<double> bare_ns, ours_ns, ratio;
  for (int r = 0; r < compared_rounds; ++r) {
    double bare_sum = 0, ours_sum = 0;
    for (int b = 0; b < batches; ++b) {
      const bool bare_first = b % 2 == 0;
      if (bare_first) bare_sum += one_batch(bare);
      ours_sum += one_batch(ours);
      if (!bare_first) bare_sum += one_batch(bare);
    }
    bare_ns.push_back(ns_per_call(bare_sum));
    ours_ns.push_back(ns_per_call(ours_sum));
    ratio.push_back(ours_sum / bare_sum);
  }
  gpu::report(name + ".bare_pairs_ns", bare_ns, "ns");
  gpu::report(name + ".acquire_release_ns", ours_ns, "ns");
  gpu::report(name + ".ratio", ratio, "ratio");
}

// What the driver asks for one event that both streams record, against one for each: the library
// keeps two.
void event_kinds(CUstream s, CUstream c) {
  const CUevent one = gpu::new_event(), two = gpu::new_event();
  const auto pairs = [&](CUevent there, CUevent back) {
    MUST(CU(cuEventRecord)(there, s));
    MUST(CU(cuStreamWaitEvent)(c, there, 0));
    MUST(CU(cuEventRecord)(back, c));
    MUST(CU(cuStreamWaitEvent)(s, back, 0));
  };
  measure("step.pairs_with_one_event", [&] { pairs(one, one); });
  measure("step.pairs_with_two_events", [&] { pairs(one, two); });
}

// A driver whose calls do nothing, for what the library itself takes.
void use_no_driver() {
  hostwait_cai_driver none;
  HOSTWAIT_CAI_INIT(none);
  none.ctx_get_current = [](void** out) { return *out = reinterpret_cast<void*>(0x10), 0; };
  none.ctx_push_current = [](void*) { return 0; };
  none.ctx_pop_current = [](void**) { return 0; };
  none.ctx_get_device = [](int*) { return 0; };
  none.ctx_get_id = [](void*, unsigned long long* id) { return *id = 1, 0; };
  none.ctx_synchronize = [] { return 0; };
  none.primary_ctx_retain = [](void** out, int) { return *out = reinterpret_cast<void*>(0x10), 0; };
  none.stream_get_ctx = [](void*, void** out) { return *out = reinterpret_cast<void*>(0x10), 0; };
  none.stream_get_flags = [](void*, unsigned* flags) { return *flags = 1, 0; };
  none.stream_query = [](void*) { return 0; };
  none.stream_is_capturing = [](void*, int* status) { return *status = 0, 0; };
  none.stream_wait_event = [](void*, void*, unsigned) { return 0; };
  none.event_create = [](void** out, unsigned) { return *out = reinterpret_cast<void*>(0x20), 0; };
  none.event_destroy = [](void*) { return 0; };
  none.event_record = [](void*, void*) { return 0; };
  none.event_query = [](void*) { return 0; };
  none.event_synchronize = [](void*) { return 0; };
  none.pointer_get_attributes = [](unsigned, int*, void**, uint64_t) { return 0; };
  none.device_can_access_peer = [](int*, int, int) { return 0; };
  none.device_get_attribute = [](int*, int, int) { return 0; };
  if (hostwait_cai_set_driver(&none) != HOSTWAIT_CAI_OK) exit(1);
}

class own_handshake {
 public:
  own_handshake() : in_(behind(nullptr, nullptr)) {
    in_.stream = 0x5000;
    in_.context = 0x10;
    HOSTWAIT_CAI_INIT(err_);
  }
  void operator()() {
    hostwait_cai_ticket ticket;
    check(hostwait_cai_acquire(&in_, 1, {0x6000}, nullptr, &ticket, &err_), err_);
    check(hostwait_cai_release(&ticket, &err_), err_);
  }

 private:
  hostwait_cai_ready in_;
  hostwait_cai_error err_;
};

void own_cost() {
  use_no_driver();
  measure("pair.library_ns", own_handshake());
  hostwait_cai_set_driver(nullptr);
}

void steps(CUcontext context, CUstream s, CUstream c) {
  const CUevent event = gpu::new_event();
  const CUdeviceptr memory = gpu::new_memory(4096);
  measure("step.record_and_wait", [&] {
    MUST(CU(cuEventRecord)(event, s));
    MUST(CU(cuStreamWaitEvent)(c, event, 0));
  });
  measure("step.create_record_wait_destroy", [&] {
    const CUevent made = gpu::new_event();
    MUST(CU(cuEventRecord)(made, s));
    MUST(CU(cuStreamWaitEvent)(c, made, 0));
    MUST(CU(cuEventDestroy)(made));
  });
  measure("step.event_create_destroy", [] { MUST(CU(cuEventDestroy)(gpu::new_event())); });
  CUstreamCaptureStatus status;
  measure("step.capture_query", [&] { MUST(CU(cuStreamIsCapturing)(s, &status)); });
  measure("step.capture_query_legacy",
          [&] { MUST(CU(cuStreamIsCapturing)(CU_STREAM_LEGACY, &status)); });
  CUcontext found;
  measure("step.stream_get_ctx", [&] { MUST(CU(cuStreamGetCtx)(s, &found)); });
  measure("step.ctx_get_current", [&] { MUST(CU(cuCtxGetCurrent)(&found)); });
  unsigned long long id;
  measure("step.ctx_get_id", [&] { MUST(CU(cuCtxGetId)(context, &id)); });
  CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_RELAXED;
  measure("step.exchange_capture_mode",
          [&] { MUST(CU(cuThreadExchangeStreamCaptureMode)(&mode)); });
  mode = CU_STREAM_CAPTURE_MODE_GLOBAL;
  MUST(CU(cuThreadExchangeStreamCaptureMode)(&mode));
  measure("step.host_sync_idle_stream", [&] { MUST(CU(cuStreamSynchronize)(s)); });

  hostwait_cai_desc desc;
  hostwait_cai_loc loc;
  hostwait_cai_error err;
  HOSTWAIT_CAI_INIT(err);
  const int64_t shape[] = {32, 32};
  check(hostwait_cai_describe("<f4", memory, 2, shape, nullptr, 0, &desc, &err), err);
  measure("step.resolve", [&] { check(hostwait_cai_resolve(&desc, nullptr, &loc, &err), err); });
  hostwait_cai_raw raw;
  HOSTWAIT_CAI_INIT(raw);
  const hostwait_cai_int extents[] = {hostwait_cai_int_of(32), hostwait_cai_int_of(32)};
  raw.container = HOSTWAIT_CAI_T_DICT;
  raw.typestr_type = HOSTWAIT_CAI_T_STR;
  raw.typestr = "<f4";
  raw.typestr_len = 3;
  raw.shape_type = raw.data_type = HOSTWAIT_CAI_T_TUPLE;
  raw.shape = extents;
  raw.shape_len = 2;
  raw.data_len = 2;
  raw.data_ptr = hostwait_cai_uint_of(memory);
  raw.data_readonly.type = HOSTWAIT_CAI_T_BOOL;
  raw.version = hostwait_cai_int_of(3);
  raw.stream = hostwait_cai_uint_of(value(s));
  measure("step.validate",
          [&] { check(hostwait_cai_validate(&raw, nullptr, &desc, nullptr, &err), err); });
}

}  // namespace

int main(int argc, char** argv) {
  if (argc > 1 && strcmp(argv[1], "quick") == 0) rounds = compared_rounds = batches = 1;
  if (argc > 2 && strcmp(argv[1], "own") == 0) {
    use_no_driver();
    own_handshake once;
    for (int i = atoi(argv[2]); i > 0; --i) once();
    return 0;
  }
  const CUcontext context = gpu::start();
  hostwait_cai_error err;
  HOSTWAIT_CAI_INIT(err);
  check(hostwait_cai_prepare(&err), err);
  const CUstream s = gpu::new_stream(), s2 = gpu::new_stream(), c = gpu::new_stream();

  const hostwait_cai_ready same = behind(c, context);
  hostwait_cai_ticket ticket;
  measure("same_stream.acquire",
          [&] { check(hostwait_cai_acquire(&same, 1, {value(c)}, nullptr, &ticket, &err), err); });
  measure("same_stream.acquire_release", [&] {
    check(hostwait_cai_acquire(&same, 1, {value(c)}, nullptr, &ticket, &err), err);
    check(hostwait_cai_release(&ticket, &err), err);
  });

  handshake("pair", behind(s, context), s, c, nullptr);
  hostwait_cai_policy promised;
  hostwait_cai_policy_init(&promised);
  promised.options |= HOSTWAIT_CAI_TRUST_NO_CAPTURE;
  handshake("pair_no_capture_promised", behind(s, context), s, c, &promised);
  handshake("pair_from_legacy", behind(CU_STREAM_LEGACY, context), CU_STREAM_LEGACY, c, nullptr);

  std::vector<hostwait_cai_ready> eight;
  for (int i = 0; i < 8; ++i) eight.push_back(behind(i % 2 ? s : s2, context));
  hostwait_cai_stats before, after;
  HOSTWAIT_CAI_INIT(before);
  HOSTWAIT_CAI_INIT(after);
  hostwait_cai_stats_get(&before);
  check(hostwait_cai_acquire(eight.data(), 8, {value(c)}, nullptr, &ticket, &err), err);
  hostwait_cai_stats_get(&after);
  check(hostwait_cai_release(&ticket, &err), err);
  gpu::report("eight_arrays_two_streams.waits", {static_cast<double>(after.waits - before.waits)},
              "waits");
  measure("eight_arrays_two_streams.acquire_release", [&] {
    check(hostwait_cai_acquire(eight.data(), 8, {value(c)}, nullptr, &ticket, &err), err);
    check(hostwait_cai_release(&ticket, &err), err);
  });
  steps(context, s, c);
  event_kinds(s, c);
  own_cost();
  return 0;
}
