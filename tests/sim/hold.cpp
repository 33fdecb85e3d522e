// SPDX-License-Identifier: Apache-2.0
// Copyright The hostwait authors
// Holds: work that ends when a test says so, and a look at the threads that wait for it.
#include <algorithm>
#include <chrono>

#include "hostwait_sim.h"
#include "state.hpp"

#define SIM_CONTROL extern "C" __attribute__((visibility("default")))

using namespace hostwait::sim;

namespace {

struct open_hold {
  stream* on;
  std::shared_ptr<bool> gate;
};
// Guarded by the queues' mutex.
std::vector<open_hold>& holds() {
  static auto* const list = new std::vector<open_hold>;
  return *list;
}

template <class Wanted>
void release_if(Wanted wanted) {
  lock held(q().mutex);
  std::erase_if(holds(), [&](const open_hold& hold) {
    if (!wanted(hold)) return false;
    *hold.gate = true;
    return true;
  });
  q().changed.notify_all();
}

}  // namespace

SIM_CONTROL int hostwait_sim_hold(void* handle) {
  if (!call.shard) attach_call_state();
  CUresult error;
  stream* s = find_stream(static_cast<CUstream>(handle), false, &error);
  if (!s) return error;
  auto gate = std::make_shared<bool>(false);
  work item;
  item.gate = gate;
  item.by_worker = true;
  lock held(q().mutex);
  holds().push_back({s, gate});
  submit(held, s, std::move(item));
  return CUDA_SUCCESS;
}

SIM_CONTROL int hostwait_sim_release(void* handle) {
  CUresult error;
  stream* s = find_stream(static_cast<CUstream>(handle), false, &error);
  if (!s) return error;
  release_if([s](const open_hold& hold) { return hold.on == s; });
  return CUDA_SUCCESS;
}

SIM_CONTROL void hostwait_sim_release_all(void) {
  release_if([](const open_hold&) { return true; });
}

SIM_CONTROL int hostwait_sim_waiting_threads(void) {
  lock held(q().mutex);
  return q().waiting_threads;
}

SIM_CONTROL int hostwait_sim_await_waiting(int threads, unsigned milliseconds) {
  lock held(q().mutex);
  return q().changed.wait_for(held, std::chrono::milliseconds(milliseconds),
                              [threads] { return q().waiting_threads >= threads; });
}
