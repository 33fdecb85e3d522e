// SPDX-License-Identifier: Apache-2.0
// Copyright The hostwait authors
// With the preloaded library in the process: labels, and no call that a policy refuses. The
// program plays that library by exporting its table.
#include <hostwait/hostwait.h>

#include "cai/support/fake_driver.hpp"
#include "support/catch.hpp"

using namespace cai_test;

namespace {

int effective = HOSTWAIT_LOG;  // < 0: the table is too old to say
std::vector<std::string> frames;
int depth = 0;
fake_driver* driver = nullptr;

int push(hostwait_action action, uint32_t kinds, const char* label, int process) {
  frames.push_back(std::to_string(action) + "/" + std::to_string(kinds) + "/" + label +
                   (process ? "/process" : ""));
  return ++depth;
}
int pop(int token, int) {
  return token == depth-- ? 0 : HOSTWAIT_INVALID;
}
int action_of(uint32_t) {
  return effective;
}

hostwait_api_table table = {sizeof table, 1,       push,    pop,     nullptr,  nullptr,
                            nullptr,      nullptr, nullptr, nullptr, action_of};

}  // namespace

extern "C" {
__attribute__((visibility("default"))) extern const hostwait_api_table* const hostwait_api;
const hostwait_api_table* const hostwait_api = &table;
}

namespace {

struct world {
  fake_driver d;
  world() {
    d.contexts[0x3000] = {"ctx0", 0, true, 1};
    d.streams[0x5100] = {"S", 0x3000, false};
    d.streams[0x6100] = {"C", 0x3000, false};
    d.initial_context = 0x3000;
    d.use();
    driver = &d;
    frames.clear();
    HOSTWAIT_CAI_INIT(in);
    in.kind = HOSTWAIT_CAI_READY_STREAM;
    in.stream = 0x5100;
    in.device = -1;
  }
  ~world() { hostwait_cai_set_driver(nullptr); }
  hostwait_cai_ready in;
};

}  // namespace

TEST_CASE("a host wait carries the label and the action that was in force") {
  world w;
  REQUIRE(hostwait_present());
  for (const hostwait_action action : {HOSTWAIT_ALLOW, HOSTWAIT_LOG, HOSTWAIT_FAIL}) {
    effective = action;
    frames.clear();
    w.d.actions.clear();
    REQUIRE(hostwait_cai_wait_host(&w.in, 1, nullptr, nullptr, nullptr) == HOSTWAIT_CAI_OK);
    CHECK(w.d.actions == std::vector<std::string>{"HOST(S)"});
    CHECK(frames == std::vector<std::string>{std::to_string(action) + "/" +
                                             std::to_string(HOSTWAIT_EVENT_SYNC) + "/exchange"});
    CHECK(depth == 0);
  }
}

TEST_CASE("where waits are refused, or nobody can say, none is made") {
  world w;
  for (const int action : {int{HOSTWAIT_ERROR}, int{HOSTWAIT_ABORT}, int{HOSTWAIT_NOT_AVAILABLE}}) {
    effective = action;
    w.d.count.clear();
    w.d.actions.clear();
    REQUIRE(hostwait_cai_wait_host(&w.in, 1, nullptr, nullptr, nullptr) == HOSTWAIT_CAI_OK);
    CHECK(w.d.count["event_synchronize"] == 0);
    CHECK(w.d.count["event_query"] == 1);
    CHECK(frames.back() ==
          std::to_string(HOSTWAIT_LOG) + "/" + std::to_string(HOSTWAIT_POLL) + "/exchange");
    CHECK(depth == 0);
  }
}

TEST_CASE("acquire stays on the event path, also where the policy names the device") {
  world w;
  effective = HOSTWAIT_ERROR;
  hostwait_cai_policy policy;
  hostwait_cai_policy_init(&policy);
  policy.legacy[0] = HOSTWAIT_CAI_LEGACY_DEVICE;
  hostwait_cai_ready unknown = w.in;
  unknown.kind = HOSTWAIT_CAI_READY_UNKNOWN;
  hostwait_cai_ticket ticket;
  REQUIRE(hostwait_cai_acquire(&unknown, 1, {0x6100}, &policy, &ticket, nullptr) == 0);
  REQUIRE(hostwait_cai_release(&ticket, nullptr) == 0);
  CHECK(w.d.count["ctx_synchronize"] == 0);
  CHECK(w.d.actions == std::vector<std::string>{"WAIT(1@ctx0->C)", "WAIT(C->1@ctx0)"});
  CHECK(frames.empty());

  effective = HOSTWAIT_LOG;
  REQUIRE(hostwait_cai_acquire(&unknown, 1, {0x6100}, &policy, &ticket, nullptr) == 0);
  CHECK(w.d.count["ctx_synchronize"] == 1);
  CHECK(frames == std::vector<std::string>{std::to_string(HOSTWAIT_LOG) + "/" +
                                           std::to_string(HOSTWAIT_DEVICE_SYNC) + "/exchange"});
  REQUIRE(hostwait_cai_release(&ticket, nullptr) == 0);
}

TEST_CASE("pending work behind an opt-out is counted without a listener of our own") {
  world w;
  w.d.busy = true;
  hostwait_cai_policy policy;
  hostwait_cai_policy_init(&policy);
  policy.sync = HOSTWAIT_CAI_SYNC_OFF;
  hostwait_cai_ticket ticket;
  hostwait_cai_stats before, after;
  HOSTWAIT_CAI_INIT(before);
  HOSTWAIT_CAI_INIT(after);
  hostwait_cai_stats_get(&before);
  REQUIRE(hostwait_cai_acquire(&w.in, 1, {0x6100}, &policy, &ticket, nullptr) == 0);
  hostwait_cai_stats_get(&after);
  CHECK(after.opt_outs_pending - before.opt_outs_pending == 1);
}
