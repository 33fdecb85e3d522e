// SPDX-License-Identifier: Apache-2.0
// Copyright The hostwait authors
// Real order on the simulated driver: values decide, and drivers without one of the two waits fail
// the same check.
#include "support/sim.hpp"

using namespace cai_test;
using std::chrono::milliseconds;

namespace {

bool releasing = false;

int no_wait(void* stream, void* event, unsigned flags) {
  if (!releasing) return 0;
  return cuStreamWaitEvent(static_cast<CUstream>(stream), static_cast<CUevent>(event), flags);
}
int no_back_edge(void* stream, void* event, unsigned flags) {
  if (releasing) return 0;
  return cuStreamWaitEvent(static_cast<CUstream>(stream), static_cast<CUevent>(event), flags);
}

struct outcome {
  bool consumer_saw_producer = false;  // the way there
  bool producer_kept_off = false;      // the way back
};

// The producer writes 7 late, the consumer copies; then the consumer copies late and the producer
// overwrites with 9.
outcome hand_over(CUstream producer, CUstream consumer, milliseconds there = milliseconds(10),
                  milliseconds back = milliseconds(10)) {
  const CUdeviceptr data = new_memory(4), copy = new_memory(4);
  const auto result = [&] { return *reinterpret_cast<volatile char*>(copy); };
  memset(reinterpret_cast<void*>(data), 1, 4);
  memset(reinterpret_cast<void*>(copy), 0, 4);
  outcome out;

  hostwait_sim_hold(producer);
  SIM_OK(cuMemsetD8Async(data, 7, 4, producer));
  const hostwait_cai_ready in = behind(producer, data);
  hostwait_cai_ticket ticket;
  releasing = false;
  CAI_OK(hostwait_cai_acquire(&in, 1, named(consumer), nullptr, &ticket, &err));
  SIM_OK(cuMemcpyDtoDAsync(copy, data, 4, consumer));
  settle(consumer, there);
  hostwait_sim_release(producer);
  SIM_OK(cuStreamSynchronize(consumer));
  SIM_OK(cuStreamSynchronize(producer));
  out.consumer_saw_producer = result() == 7;

  memset(reinterpret_cast<void*>(data), 7, 4);
  memset(reinterpret_cast<void*>(copy), 0, 4);
  hostwait_sim_hold(consumer);
  SIM_OK(cuMemcpyDtoDAsync(copy, data, 4, consumer));
  releasing = true;
  CAI_OK(hostwait_cai_release(&ticket, &err));
  releasing = false;
  SIM_OK(cuMemsetD8Async(data, 9, 4, producer));
  settle(producer, back);
  hostwait_sim_release(consumer);
  SIM_OK(cuStreamSynchronize(consumer));
  SIM_OK(cuStreamSynchronize(producer));
  out.producer_kept_off = result() == 7;
  cuMemFree(data);
  cuMemFree(copy);
  return out;
}

struct stream_pair {
  const char* name;
  CUstream producer, consumer;
  bool implicit;  // legacy against blocking: the driver orders them anyway
};

// For a mutant to go wrong; it ends as soon as it does.
milliseconds long_enough(const stream_pair& p) {
  return milliseconds(p.implicit ? 10 : 10000);
}

std::vector<stream_pair> pairs() {
  const CUstream free1 = new_stream(), free2 = new_stream();
  const CUstream blocking1 = new_stream(CU_STREAM_DEFAULT),
                 blocking2 = new_stream(CU_STREAM_DEFAULT);
  return {{"non-blocking to non-blocking", free1, free2, false},
          {"blocking to blocking", blocking1, blocking2, false},
          {"blocking to non-blocking", blocking1, free1, false},
          {"legacy to non-blocking", CU_STREAM_LEGACY, free1, false},
          {"non-blocking to legacy", free1, CU_STREAM_LEGACY, false},
          {"legacy to blocking", CU_STREAM_LEGACY, blocking1, true},
          {"blocking to legacy", blocking1, CU_STREAM_LEGACY, true},
          {"per-thread to non-blocking", CU_STREAM_PER_THREAD, free1, false},
          {"non-blocking to per-thread", free1, CU_STREAM_PER_THREAD, false},
          {"per-thread to blocking", CU_STREAM_PER_THREAD, blocking1, false},
          {"per-thread to legacy", CU_STREAM_PER_THREAD, CU_STREAM_LEGACY, true}};
}

}  // namespace

TEST_CASE("both ways are ordered, on every kind of stream") {
  const own_context context;
  const driver_in_use real;
  for (const stream_pair& p : pairs()) {
    INFO(p.name);
    const outcome o = hand_over(p.producer, p.consumer);
    CHECK(o.consumer_saw_producer);
    CHECK(o.producer_kept_off);
  }
}

TEST_CASE("mutant: without the wait the consumer reads too early") {
  const own_context context;
  hostwait_cai_driver table = whole_driver();
  table.stream_wait_event = no_wait;
  const driver_in_use mutant(table);
  for (const stream_pair& p : pairs()) {
    INFO(p.name);
    const outcome o = hand_over(p.producer, p.consumer, long_enough(p));
    CHECK(o.consumer_saw_producer == p.implicit);
    CHECK(o.producer_kept_off);
  }
}

TEST_CASE("mutant: without the back edge the producer overwrites too early") {
  const own_context context;
  hostwait_cai_driver table = whole_driver();
  table.stream_wait_event = no_back_edge;
  const driver_in_use mutant(table);
  for (const stream_pair& p : pairs()) {
    INFO(p.name);
    const outcome o = hand_over(p.producer, p.consumer, milliseconds(10), long_enough(p));
    CHECK(o.consumer_saw_producer);
    CHECK(o.producer_kept_off == p.implicit);
  }
}

TEST_CASE("a thousand hand-overs give the right value") {
  const own_context context;
  const driver_in_use real;
  const CUstream s = new_stream(), c = new_stream();
  const CUdeviceptr data = new_memory(4), copy = new_memory(4);
  const hostwait_cai_ready in = behind(s, data);
  int wrong = 0;
  for (int i = 0; i < 1000; ++i) {
    const unsigned char expected = static_cast<unsigned char>(i);
    SIM_OK(cuMemsetD8Async(data, expected, 4, s));
    hostwait_cai_ticket ticket;
    CAI_OK(hostwait_cai_acquire(&in, 1, named(c), nullptr, &ticket, &err));
    SIM_OK(cuMemcpyDtoDAsync(copy, data, 4, c));
    CAI_OK(hostwait_cai_release(&ticket, &err));
    SIM_OK(cuStreamSynchronize(c));
    wrong += *reinterpret_cast<unsigned char*>(copy) != expected;
  }
  CHECK(wrong == 0);
}

TEST_CASE("the same stream costs no driver call, and eight arrays from two streams two waits") {
  const own_context context;
  const driver_in_use real;
  CAI_OK(hostwait_cai_prepare(&err));
  const CUstream s1 = new_stream(), s2 = new_stream(), c = new_stream();
  hostwait_cai_ticket ticket;
  const hostwait_cai_ready same = behind(c);
  hostwait_sim_record(1);
  CAI_OK(hostwait_cai_acquire(&same, 1, named(c), nullptr, &ticket, &err));
  CAI_OK(hostwait_cai_release(&ticket, &err));
  CHECK(hostwait_sim_recorded_count() == 0);
  hostwait_sim_record(0);

  std::vector<hostwait_cai_ready> eight;
  for (int i = 0; i < 8; ++i) eight.push_back(behind(i % 2 ? s1 : s2));
  const uint64_t waits = hostwait_sim_calls("cuStreamWaitEvent");
  const uint64_t created = hostwait_sim_calls("cuEventCreate");
  const uint64_t records = hostwait_sim_calls("cuEventRecord");
  CAI_OK(hostwait_cai_acquire(eight.data(), 8, named(c), nullptr, &ticket, &err));
  CHECK(hostwait_sim_calls("cuStreamWaitEvent") - waits == 2);
  CAI_OK(hostwait_cai_release(&ticket, &err));
  CHECK(hostwait_sim_calls("cuStreamWaitEvent") - waits == 4);
  CHECK(hostwait_sim_calls("cuEventRecord") - records == 3);  // the consumer's end once
  CHECK(hostwait_sim_calls("cuEventCreate") == created);
}

TEST_CASE("more producer streams than a ticket has room for") {
  const own_context context;
  const driver_in_use real;
  const CUstream c = new_stream();
  std::vector<CUstream> producers;
  std::vector<hostwait_cai_ready> in;
  for (int i = 0; i < 40; ++i) {
    producers.push_back(new_stream());
    in.push_back(behind(producers.back()));
  }
  for (CUstream s : producers) hostwait_sim_hold(s);
  hostwait_cai_ticket ticket;
  CAI_OK(hostwait_cai_acquire(in.data(), in.size(), named(c), nullptr, &ticket, &err));
  for (CUstream s : producers) {
    CHECK(cuStreamQuery(c) == CUDA_ERROR_NOT_READY);
    hostwait_sim_release(s);
    SIM_OK(cuStreamSynchronize(s));
  }
  SIM_OK(cuStreamSynchronize(c));
  hostwait_sim_hold(c);
  SIM_OK(cuMemsetD8Async(new_memory(1), 0, 1, c));
  CAI_OK(hostwait_cai_release(&ticket, &err));
  for (CUstream s : producers) CHECK(cuStreamQuery(s) == CUDA_ERROR_NOT_READY);
  hostwait_sim_release(c);
  for (CUstream s : producers) SIM_OK(cuStreamSynchronize(s));
}

TEST_CASE("acquire does not stop the host, waiting for the host does and ends with the work") {
  const own_context context;
  const driver_in_use real;
  const CUstream s = new_stream(), c = new_stream();
  const CUdeviceptr data = new_memory(4);
  const hostwait_cai_ready in = behind(s, data);
  hostwait_cai_ticket ticket;
  CHECK_FALSE(sim_test::host_stops_behind(s, [&] {
    CAI_OK(hostwait_cai_acquire(&in, 1, named(c), nullptr, &ticket, &err));
    CAI_OK(hostwait_cai_release(&ticket, &err));
  }));
  memset(reinterpret_cast<void*>(data), 1, 4);
  hostwait_sim_hold(s);
  SIM_OK(cuMemsetD8Async(data, 7, 4, s));
  CHECK(sim_test::host_stops_in(
      [&] { CAI_OK(hostwait_cai_wait_host(&in, 1, nullptr, nullptr, &err)); }));
  CHECK(*reinterpret_cast<char*>(data) == 7);
}

TEST_CASE("polling: a host consumer, and a stream's own work") {
  const own_context context;
  const driver_in_use real;
  const CUstream s = new_stream(), c = new_stream();
  const CUdeviceptr data = new_memory(4);
  const hostwait_cai_ready in = behind(s, data);
  hostwait_cai_ticket ticket;
  int done = -1;
  hostwait_sim_hold(s);
  SIM_OK(cuMemsetD8Async(data, 7, 4, s));
  CAI_OK(hostwait_cai_acquire_host(&in, 1, nullptr, &ticket, &err));
  CAI_OK(hostwait_cai_poll(&ticket, &done, &err));
  CHECK(done == 0);
  hostwait_sim_release(s);
  SIM_OK(cuStreamSynchronize(s));
  CAI_OK(hostwait_cai_poll(&ticket, &done, &err));
  CHECK(done == 1);
  CHECK(*reinterpret_cast<char*>(data) == 7);

  SECTION("work enqueued after all is ordered back") {
    hostwait_sim_hold(c);
    SIM_OK(cuMemsetD8Async(data, 8, 4, c));
    CAI_OK(hostwait_cai_attach(&ticket, named(c), &err));
    CAI_OK(hostwait_cai_release(&ticket, &err));
    CHECK(cuStreamQuery(s) == CUDA_ERROR_NOT_READY);
    hostwait_sim_release(c);
    SIM_OK(cuStreamSynchronize(s));
  }
  SECTION("without, nothing is") {
    hostwait_sim_hold(c);
    SIM_OK(cuMemsetD8Async(data, 8, 4, c));
    CAI_OK(hostwait_cai_release(&ticket, &err));
    CHECK(cuStreamQuery(s) == CUDA_SUCCESS);
    hostwait_sim_release(c);
  }
  SECTION("a stream ticket") {
    CAI_OK(hostwait_cai_release(&ticket, &err));
    CAI_OK(hostwait_cai_acquire(&in, 1, named(c), nullptr, &ticket, &err));
    hostwait_sim_hold(c);
    SIM_OK(cuMemsetD8Async(data, 8, 4, c));
    CAI_OK(hostwait_cai_poll(&ticket, &done, &err));
    CHECK(done == 0);
    hostwait_sim_release(c);
    SIM_OK(cuStreamSynchronize(c));
    CAI_OK(hostwait_cai_poll(&ticket, &done, &err));
    CHECK(done == 1);
    CAI_OK(hostwait_cai_release(&ticket, &err));
    CHECK(hostwait_cai_poll(&ticket, &done, nullptr) == HOSTWAIT_CAI_ERR_INVALID);
  }
}

TEST_CASE("an owner is kept until the consumer's stream has passed") {
  const own_context context;
  const driver_in_use real;
  const CUstream c = new_stream(), d = new_stream();
  std::vector<void*> dropped;
  const auto drop = [](void* owner, void* user) {
    static_cast<std::vector<void*>*>(user)->push_back(owner);
  };
  int first = 0, second = 0;
  size_t left = 9;
  hostwait_sim_hold(c);
  SIM_OK(cuMemsetD8Async(new_memory(1), 0, 1, c));
  CAI_OK(hostwait_cai_retire(named(c), &first, &err));
  CAI_OK(hostwait_cai_retire(named(d), &second, &err));
  SIM_OK(cuStreamSynchronize(d));
  CAI_OK(hostwait_cai_drain(drop, &dropped, &left, &err));
  CHECK(dropped == std::vector<void*>{&second});  // the other stream's, though retired later
  CHECK(left == 1);
  hostwait_sim_release(c);
  SIM_OK(cuStreamSynchronize(c));
  CAI_OK(hostwait_cai_drain(drop, &dropped, &left, &err));
  CHECK(dropped == std::vector<void*>{&second, &first});
  CHECK(left == 0);
}

TEST_CASE("who drains a queue gets only what was retired into it") {
  const own_context context;
  const driver_in_use real;
  const CUstream c = new_stream();
  std::vector<void*> dropped;
  const auto drop = [](void* owner, void* user) {
    static_cast<std::vector<void*>*>(user)->push_back(owner);
  };
  int plain = 0, own = 0;
  size_t left = 9;
  CAI_OK(hostwait_cai_retire(named(c), &plain, &err));
  CAI_OK(hostwait_cai_retire_in(value(&own), named(c), &own, &err));
  SIM_OK(cuStreamSynchronize(c));
  CAI_OK(hostwait_cai_drain_in(HOSTWAIT_CAI_QUEUE_PYTHON, drop, &dropped, &left, &err));
  CHECK(dropped.empty());
  CHECK(left == 0);
  CAI_OK(hostwait_cai_drain_in(value(&own), drop, &dropped, &left, &err));
  CHECK(dropped == std::vector<void*>{&own});
  CAI_OK(hostwait_cai_drain(drop, &dropped, &left, &err));
  CHECK(dropped == std::vector<void*>{&own, &plain});
  CHECK(left == 0);
}

TEST_CASE("a foreign event is waited for, not recorded and not freed") {
  const own_context context;
  const driver_in_use real;
  const CUstream s = new_stream(), c = new_stream();
  const CUdeviceptr data = new_memory(4);
  uint64_t event = 0;
  hostwait_sim_hold(s);
  SIM_OK(cuMemsetD8Async(data, 7, 4, s));
  CAI_OK(hostwait_cai_arrow_event(named(s), &event, &err));
  hostwait_cai_ready in = behind(nullptr);
  in.kind = HOSTWAIT_CAI_READY_EVENT;
  in.event = event;
  hostwait_cai_ticket ticket;
  const uint64_t records = hostwait_sim_calls("cuEventRecord");
  CAI_OK(hostwait_cai_acquire(&in, 1, named(c), nullptr, &ticket, &err));
  CAI_OK(hostwait_cai_release(&ticket, &err));
  CHECK(hostwait_sim_calls("cuEventRecord") == records);
  SIM_OK(cuMemsetD8Async(data, 8, 4, c));
  settle(c, milliseconds(10));
  hostwait_sim_release(s);
  SIM_OK(cuStreamSynchronize(c));
  CHECK(*reinterpret_cast<char*>(data) == 8);
  CHECK(cuEventQuery(reinterpret_cast<CUevent>(event)) == CUDA_SUCCESS);
  hostwait_cai_arrow_event_free(event);
}

TEST_CASE("an export joins the other pending streams") {
  const own_context context;
  const driver_in_use real;
  const CUstream s1 = new_stream(), s2 = new_stream();
  const hostwait_cai_stream pending[] = {named(s1), named(s2), named(s2)};
  hostwait_cai_export request;
  HOSTWAIT_CAI_INIT(request);
  request.pending = pending;
  request.pending_count = 3;
  request.chosen = named(s1);
  request.flags = HOSTWAIT_CAI_EXPORT_KEPT;
  hostwait_cai_exported out;
  hostwait_sim_hold(s2);
  SIM_OK(cuMemsetD8Async(new_memory(1), 0, 1, s2));
  CAI_OK(hostwait_cai_export_prepare(&request, &out, &err));
  CHECK(out.stream == value(s1));
  CHECK(cuStreamQuery(s1) == CUDA_ERROR_NOT_READY);
  hostwait_sim_release(s2);
  SIM_OK(cuStreamSynchronize(s1));
}
