// SPDX-License-Identifier: Apache-2.0
// Copyright The hostwait authors
// Frames, tokens, and the table of verdict against action (DESIGN section 4).
#include "policy.hpp"

#include <string>

#include "support/catch.hpp"

using namespace hostwait;
using namespace hostwait::policy;

namespace {

action_set frame_of(int action, std::uint32_t kinds, std::uint32_t armed = HOSTWAIT_ALL) {
  int error = 0;
  const action_set set = make_frame(action, kinds, armed, error);
  REQUIRE(error == 0);
  return set;
}

}  // namespace

TEST_CASE("an action set holds one action per kind") {
  for (unsigned kind = 0; kind < kind_count; ++kind) {
    const action_set set = fill(1u << kind, HOSTWAIT_ERROR, HOSTWAIT_LOG);
    for (unsigned other = 0; other < kind_count; ++other)
      CHECK(action_of(set, other) == (other == kind ? HOSTWAIT_ERROR : HOSTWAIT_LOG));
  }
}

TEST_CASE("a frame decides only the kinds it names") {
  const action_set set = lay_over(all_log, frame_of(HOSTWAIT_ERROR, HOSTWAIT_SYNC));
  CHECK(action_of(set, HOSTWAIT_KIND_COPY) == HOSTWAIT_ERROR);
  CHECK(action_of(set, HOSTWAIT_KIND_FREE) == HOSTWAIT_LOG);
  CHECK(action_of(set, HOSTWAIT_KIND_POLL) == HOSTWAIT_LOG);
}

TEST_CASE("the newest frame that names the kind decides") {
  frame_stack stack;
  CHECK(stack.push(frame_of(HOSTWAIT_ERROR, HOSTWAIT_SYNC), 1, "outer") == 1);
  CHECK(stack.push(frame_of(HOSTWAIT_ALLOW, HOSTWAIT_COPY), 2, nullptr) == 2);
  const action_set set = stack.over(all_log);
  CHECK(action_of(set, HOSTWAIT_KIND_COPY) == HOSTWAIT_ALLOW);
  CHECK(action_of(set, HOSTWAIT_KIND_STREAM_SYNC) == HOSTWAIT_ERROR);
  CHECK(action_of(set, HOSTWAIT_KIND_MODULE) == HOSTWAIT_LOG);
  CHECK(std::string(stack.label()) == "outer");
}

TEST_CASE("only the newest frame's token pops") {
  frame_stack stack;
  stack.push(frame_of(HOSTWAIT_ERROR, HOSTWAIT_SYNC), 1, nullptr);
  stack.push(frame_of(HOSTWAIT_FAIL, HOSTWAIT_SYNC), 2, nullptr);
  CHECK(stack.pop(1) == HOSTWAIT_INVALID);
  CHECK(stack.depth == 2);
  CHECK(stack.pop(2) == 0);
  CHECK(stack.pop(2) == HOSTWAIT_INVALID);
  CHECK(stack.pop(1) == 0);
  CHECK(stack.pop(1) == HOSTWAIT_INVALID);
  CHECK(stack.over(all_log) == all_log);
}

TEST_CASE("frames and labels are bounded") {
  frame_stack stack;
  for (unsigned i = 0; i < max_frames; ++i)
    REQUIRE(stack.push(all_log, static_cast<int>(i + 1), nullptr) == static_cast<int>(i + 1));
  CHECK(stack.push(all_log, 1000, nullptr) == HOSTWAIT_NO_ROOM);
  CHECK(stack.depth == max_frames);
  CHECK(stack.pop(max_frames) == 0);
  const std::string long_label(100, 'x');
  stack.push(all_log, 1000, long_label.c_str());
  CHECK(std::string(stack.label()) == std::string(label_bytes - 1, 'x'));
}

TEST_CASE("wrong arguments of a push are told apart") {
  int error = 0;
  make_frame(HOSTWAIT_TRAP + 1, HOSTWAIT_SYNC, HOSTWAIT_ALL, error);
  CHECK(error == HOSTWAIT_INVALID);
  make_frame(-1, HOSTWAIT_SYNC, HOSTWAIT_ALL, error);
  CHECK(error == HOSTWAIT_INVALID);
  make_frame(HOSTWAIT_ERROR, 1u << 14, HOSTWAIT_ALL, error);
  CHECK(error == HOSTWAIT_INVALID);
  make_frame(HOSTWAIT_ERROR, 0, HOSTWAIT_ALL, error);
  CHECK(error == HOSTWAIT_INVALID);
  make_frame(HOSTWAIT_LOG, HOSTWAIT_POLL, HOSTWAIT_ALL, error);
  CHECK(error == HOSTWAIT_NOT_ARMED);
  make_frame(HOSTWAIT_LOG, HOSTWAIT_POLL, HOSTWAIT_ALL | HOSTWAIT_POLL, error);
  CHECK(error == 0);
}

TEST_CASE("before the call: what is refused") {
  using verdict = hostwait_verdict;
  const unsigned copy = HOSTWAIT_KIND_COPY;
  for (const verdict v :
       {HOSTWAIT_VERDICT_STREAM, HOSTWAIT_VERDICT_LEGACY, HOSTWAIT_VERDICT_CONTEXT}) {
    CHECK(decide_before(HOSTWAIT_ERROR, copy, v, false).refuse);
    CHECK(decide_before(HOSTWAIT_ABORT, copy, v, false).abort);
    CHECK_FALSE(decide_before(HOSTWAIT_LOG, copy, v, false).refuse);
    CHECK_FALSE(decide_before(HOSTWAIT_FAIL, copy, v, false).refuse);
    const before_call trap = decide_before(HOSTWAIT_TRAP, copy, v, false);
    CHECK((trap.trap && !trap.refuse));
    for (const unsigned kind :
         {HOSTWAIT_KIND_FREE, HOSTWAIT_KIND_HOST_FREE, HOSTWAIT_KIND_MODULE, HOSTWAIT_KIND_CONTEXT,
          HOSTWAIT_KIND_POLL, HOSTWAIT_KIND_QUEUE_FULL, HOSTWAIT_KIND_UNLISTED}) {
      CHECK_FALSE(decide_before(HOSTWAIT_ERROR, kind, v, true).refuse);
      CHECK_FALSE(decide_before(HOSTWAIT_ABORT, kind, v, true).abort);
    }
  }
  CHECK_FALSE(decide_before(HOSTWAIT_ERROR, copy, HOSTWAIT_VERDICT_NONE, true).refuse);
  CHECK_FALSE(decide_before(HOSTWAIT_ERROR, copy, HOSTWAIT_VERDICT_DEPENDS, false).refuse);
  CHECK(decide_before(HOSTWAIT_ERROR, copy, HOSTWAIT_VERDICT_DEPENDS, true).refuse);
  CHECK_FALSE(decide_before(HOSTWAIT_TRAP, copy, HOSTWAIT_VERDICT_NONE, false).trap);
}

TEST_CASE("after the call: the three verdict rows") {
  const unsigned copy = HOSTWAIT_KIND_COPY;
  const auto check = [&](unsigned action, hostwait_verdict v, bool over, result what,
                         bool violation) {
    const after_call then = decide_after(action, copy, v, over, false);
    CHECK(then.what == what);
    CHECK(then.violation == violation);
  };
  check(HOSTWAIT_LOG, HOSTWAIT_VERDICT_STREAM, true, result::waited, false);
  check(HOSTWAIT_LOG, HOSTWAIT_VERDICT_STREAM, false, result::latent, false);
  check(HOSTWAIT_FAIL, HOSTWAIT_VERDICT_LEGACY, true, result::waited, true);
  check(HOSTWAIT_FAIL, HOSTWAIT_VERDICT_LEGACY, false, result::latent, true);
  check(HOSTWAIT_LOG, HOSTWAIT_VERDICT_DEPENDS, true, result::waited, false);
  check(HOSTWAIT_LOG, HOSTWAIT_VERDICT_DEPENDS, false, result::counted, false);
  check(HOSTWAIT_FAIL, HOSTWAIT_VERDICT_DEPENDS, true, result::waited, true);
  check(HOSTWAIT_FAIL, HOSTWAIT_VERDICT_DEPENDS, false, result::counted, false);
  check(HOSTWAIT_ERROR, HOSTWAIT_VERDICT_UNMEASURED, true, result::waited, true);
  check(HOSTWAIT_LOG, HOSTWAIT_VERDICT_NONE, true, result::held, false);
  check(HOSTWAIT_FAIL, HOSTWAIT_VERDICT_NONE, true, result::held, false);
  check(HOSTWAIT_LOG, HOSTWAIT_VERDICT_NONE, false, result::nothing, false);
  const after_call refused =
      decide_after(HOSTWAIT_ERROR, copy, HOSTWAIT_VERDICT_STREAM, false, true);
  CHECK(refused.what == result::refused);
  CHECK(refused.violation);
}

TEST_CASE("a free under error is made and counts as a violation") {
  const after_call then =
      decide_after(HOSTWAIT_ERROR, HOSTWAIT_KIND_FREE, HOSTWAIT_VERDICT_CONTEXT, false, false);
  CHECK(then.what == result::latent);
  CHECK(then.violation);
}

TEST_CASE("back-pressure never fails a gate") {
  const after_call then =
      decide_after(HOSTWAIT_FAIL, HOSTWAIT_KIND_QUEUE_FULL, HOSTWAIT_VERDICT_DEPENDS, true, false);
  CHECK(then.what == result::waited);
  CHECK_FALSE(then.violation);
}

TEST_CASE("thread name patterns") {
  CHECK(matches_any("loader*", "loader-3"));
  CHECK(matches_any("a,loader?", "loader3"));
  CHECK_FALSE(matches_any("loader", "loader3"));
  CHECK_FALSE(matches_any("", "loader"));
  CHECK(matches_any("*", ""));
  CHECK(matches_any("pt_*_7", "pt_autograd_7"));
}
