// SPDX-License-Identifier: Apache-2.0
// Copyright The hostwait authors
// What a verdict predicts, and how a measurement is held against it.
#include "probe/predict.hpp"

#include "probe/result.hpp"
#include "support/catch.hpp"

using namespace hostwait;
using namespace hostwait::probe;

namespace {

judgement says(hostwait_verdict verdict, hostwait_reason reason = HOSTWAIT_REASON_NONE) {
  judgement j;
  j.verdict = verdict;
  j.reason = reason;
  return j;
}

result measured(hostwait_verdict verdict, stream_kind own, stream_kind busy, bool blocked) {
  result r;
  r.verdict = says(verdict);
  r.own = own;
  r.busy = busy;
  r.blocked = blocked;
  compare(r);
  return r;
}

}  // namespace

TEST_CASE("a verdict names the streams whose work it waits for") {
  using s = stream_kind;
  const auto stream = says(HOSTWAIT_VERDICT_STREAM);
  CHECK(predict(stream, s::nonblocking, s::nonblocking) == prediction::blocked);
  CHECK(predict(stream, s::other_nonblocking, s::nonblocking) == prediction::free);
  CHECK(predict(stream, s::blocking, s::legacy) == prediction::blocked);
  CHECK(predict(stream, s::per_thread, s::legacy) == prediction::blocked);
  CHECK(predict(stream, s::other_blocking, s::legacy) == prediction::blocked);
  CHECK(predict(stream, s::nonblocking, s::legacy) == prediction::free);
  CHECK(predict(stream, s::none, s::legacy) == prediction::free);
  const auto legacy = says(HOSTWAIT_VERDICT_LEGACY);
  CHECK(predict(legacy, s::legacy, s::per_thread) == prediction::blocked);
  CHECK(predict(legacy, s::legacy, s::blocking) == prediction::blocked);
  CHECK(predict(legacy, s::legacy, s::nonblocking) == prediction::free);
  const auto context = says(HOSTWAIT_VERDICT_CONTEXT);
  CHECK(predict(context, s::none, s::nonblocking) == prediction::blocked);
  CHECK(predict(context, s::none, s::none) == prediction::free);
  CHECK(predict(says(HOSTWAIT_VERDICT_NONE), s::nonblocking, s::nonblocking) == prediction::free);
}

TEST_CASE("what depends on the own stream's queue depends there only") {
  using s = stream_kind;
  const auto staged = says(HOSTWAIT_VERDICT_DEPENDS, HOSTWAIT_REASON_STAGING_LIMIT);
  CHECK(predict(staged, s::nonblocking, s::nonblocking) == prediction::depends);
  CHECK(predict(staged, s::other_nonblocking, s::nonblocking) == prediction::free);
  CHECK(predict(staged, s::legacy, s::blocking) == prediction::depends);
  CHECK(predict(says(HOSTWAIT_VERDICT_DEPENDS, HOSTWAIT_REASON_LAZY_LOAD), s::other_nonblocking,
                s::nonblocking) == prediction::depends);
  CHECK(predict(says(HOSTWAIT_VERDICT_UNMEASURED, HOSTWAIT_REASON_UNMEASURED), s::none,
                s::nonblocking) == prediction::depends);
}

TEST_CASE("agreement, and what is not judged") {
  using s = stream_kind;
  CHECK(measured(HOSTWAIT_VERDICT_CONTEXT, s::none, s::nonblocking, true).agree == agreement::yes);
  CHECK(measured(HOSTWAIT_VERDICT_CONTEXT, s::none, s::nonblocking, false).agree == agreement::no);
  CHECK(measured(HOSTWAIT_VERDICT_NONE, s::none, s::nonblocking, true).agree == agreement::no);
  CHECK(measured(HOSTWAIT_VERDICT_DEPENDS, s::none, s::legacy, true).agree == agreement::depends);
  CHECK(measured(HOSTWAIT_VERDICT_NONE, s::none, s::none, false).agree == agreement::unjudged);
  result r = measured(HOSTWAIT_VERDICT_NONE, s::none, s::nonblocking, true);
  r.returned = "CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED";
  compare(r);
  CHECK(r.agree == agreement::unjudged);
  r.returned.clear();
  r.what = outcome::hung;
  compare(r);
  CHECK(r.agree == agreement::unjudged);
}

TEST_CASE("stored facts are judged by today's rules") {
  result r;
  r.symbol = "cuMemcpyDtoHAsync_v2";
  r.in_table = true;
  static const char somewhere = 0;
  r.facts.source = {&somewhere, declared::device};
  r.facts.destination = {&somewhere, declared::host};
  r.facts.bytes = 4;
  r.facts.has_stream = true;
  r.facts.stream = 0x100;
  r.source = HOSTWAIT_MEMORY_DEVICE;
  r.destination = HOSTWAIT_MEMORY_PAGEABLE;
  r.own = r.busy = stream_kind::nonblocking;
  r.blocked = true;
  judge_again(r);
  CHECK((r.verdict.verdict == HOSTWAIT_VERDICT_STREAM && r.agree == agreement::yes));
  r.destination = HOSTWAIT_MEMORY_PINNED;
  judge_again(r);
  CHECK((r.verdict.verdict == HOSTWAIT_VERDICT_NONE && r.agree == agreement::no));
  r.symbol = "cuSomethingOfYesterday";
  r.blocked = false;
  judge_again(r);
  CHECK(r.agree == agreement::yes);
}
