// SPDX-License-Identifier: Apache-2.0
// Copyright The hostwait authors
// One array between two handles goes a short way of its own, anything else through the planner.
// Both must do the same; an array that is ready anyhow makes two of one.
#include "cai/support/fake_driver.hpp"
#include "support/catch.hpp"

using namespace cai_test;

namespace {

constexpr uint64_t ctx = 0x3000, other_ctx = 0x3100, S = 0x5100, C = 0x6100;

struct outcome {
  int acquired, released, errors, failed_array;
  uint64_t waits, back_edges, refused;
  std::vector<std::string> actions, event_contexts;
  bool operator==(const outcome&) const = default;
};

fake_driver world() {
  fake_driver d;
  d.contexts[ctx] = {"ctx0", 0, true, 1};
  d.contexts[other_ctx] = {"ctx1", 1, true, 2};
  d.streams[S] = {"S", ctx, false};
  d.streams[C] = {"C", ctx, false};
  d.initial_context = ctx;
  return d;
}

outcome hand_over(fake_driver& d, size_t n, const hostwait_cai_policy* policy) {
  hostwait_cai_ready in[2];
  for (hostwait_cai_ready& r : in) HOSTWAIT_CAI_INIT(r);
  in[0].kind = HOSTWAIT_CAI_READY_STREAM;
  in[0].stream = S;
  in[0].device = -1;
  hostwait_cai_stats before, after;
  HOSTWAIT_CAI_INIT(before);
  HOSTWAIT_CAI_INIT(after);
  hostwait_cai_error err;
  HOSTWAIT_CAI_INIT(err);
  hostwait_cai_ticket ticket;
  outcome o{};
  d.actions.clear();
  d.event_contexts.clear();
  d.releasing = false;
  d.errors = 0;
  hostwait_cai_stats_get(&before);
  o.acquired = hostwait_cai_acquire(in, n, {C}, policy, &ticket, &err);
  CHECK(err.code == o.acquired);
  o.failed_array = err.array;
  d.releasing = true;
  o.released = hostwait_cai_release(&ticket, &err);
  CHECK(err.code == o.released);
  hostwait_cai_stats_get(&after);
  o.waits = after.waits - before.waits;
  o.back_edges = after.back_edges - before.back_edges;
  o.refused = after.capture_refused - before.capture_refused;
  o.errors = d.errors;
  o.actions = d.actions;
  o.event_contexts = d.event_contexts;
  return o;
}

// Twice on a driver each, since the first time creates events; the second in the state that
// `change` makes.
template <typename Change>
outcome both_ways(Change&& change, const hostwait_cai_policy* policy = nullptr) {
  outcome found[2];
  for (size_t n : {1, 2}) {
    fake_driver d = world();
    d.use();
    hand_over(d, n, policy);
    change(d);
    found[n - 1] = hand_over(d, n, policy);
    CHECK_FALSE(d.capture_broken);
    hostwait_cai_set_driver(nullptr);
  }
  CHECK(found[0] == found[1]);
  return found[0];
}

}  // namespace

TEST_CASE("the short way does what the planner does") {
  hostwait_cai_policy policy;
  hostwait_cai_policy_init(&policy);
  const std::vector<std::string> there_and_back{"WAIT(S->C)", "BACK(C->S)"};
  CHECK(both_ways([](fake_driver&) {}).actions == there_and_back);
  CHECK(both_ways([](fake_driver& d) { d.captures["S"] = 1; }).acquired ==
        HOSTWAIT_CAI_ERR_CAPTURE_BOUNDARY);
  CHECK(both_ways([](fake_driver& d) { d.captures["C"] = 1; }).refused == 1);
  CHECK(both_ways([](fake_driver& d) { d.captures["S"] = d.captures["C"] = 1; }).actions ==
        there_and_back);
  CHECK(both_ways([](fake_driver& d) { d.captures["S"] = -1; }).acquired ==
        HOSTWAIT_CAI_ERR_CAPTURE_INVALIDATED);
  CHECK(both_ways([](fake_driver& d) { d.streams[C].context = other_ctx; }).errors == 1);
  CHECK(both_ways([](fake_driver& d) { d.streams[S].context = other_ctx; }).errors == 1);
  CHECK(both_ways([](fake_driver& d) { d.contexts[ctx].id = 9; }).actions == there_and_back);
  SECTION("without the way back") {
    policy.options = HOSTWAIT_CAI_NO_BACK_EDGE;
    CHECK(both_ways([](fake_driver&) {}, &policy).back_edges == 0);
  }
  SECTION("not ordered at all") {
    policy.sync = HOSTWAIT_CAI_SYNC_OFF;
    CHECK(both_ways([](fake_driver&) {}, &policy).actions.empty());
  }
  SECTION("taken as ready at the border of a capture") {
    policy.capture = HOSTWAIT_CAI_CAPTURE_ASSUME_READY;
    CHECK(both_ways([](fake_driver& d) { d.captures["C"] = 1; }, &policy).waits == 0);
  }
}

TEST_CASE("a question that fails is told with its array and not asked again") {
  static int asked = 0;
  for (size_t n : {1, 2}) {
    fake_driver d = world();
    d.use();
    hand_over(d, n, nullptr);
    hostwait_cai_driver table = d.table();
    table.stream_is_capturing = [](void*, int*) { return ++asked, 719; };
    REQUIRE(hostwait_cai_set_driver(&table) == HOSTWAIT_CAI_OK);
    asked = 0;
    const outcome o = hand_over(d, n, nullptr);
    CHECK(o.acquired == HOSTWAIT_CAI_ERR_DRIVER);
    CHECK(o.failed_array == 0);
    CHECK(asked == 1);
    hostwait_cai_set_driver(nullptr);
  }
}
