// SPDX-License-Identifier: Apache-2.0
// Copyright The hostwait authors
// Verdict profiles: the parser, the look-up, what they override and what they leave alone.
#include "profile.hpp"

#include <cstring>
#include <memory>
#include <string>

#include "support/catch.hpp"

using namespace hostwait;

namespace {

constexpr hostwait_memory unknown = HOSTWAIT_MEMORY_UNKNOWN;
const std::string head = "hostwait-profile 1\ndevice\tSome GPU\t90\t13000\n";

struct loaded {
  std::unique_ptr<verdict_profile> profile = std::make_unique<verdict_profile>();
  profile_problem problem;
  bool good;
  explicit loaded(const std::string& text)
      : good(profile->parse(text.data(), text.size(), problem)) {}
};

call_facts copy(std::uint64_t bytes) {
  static const char host = 0;
  call_facts f;
  f.source = {&host, declared::host};
  f.destination = {reinterpret_cast<const void*>(0x1000), declared::device};
  f.bytes = bytes;
  return f;
}

judgement depends() {
  judgement j;
  j.verdict = HOSTWAIT_VERDICT_DEPENDS;
  j.reason = HOSTWAIT_REASON_UNMEASURED;
  return j;
}

}  // namespace

TEST_CASE("a profile says what a row waits for, by memory and size") {
  const loaded l(head +
                 "# comment\n\n"
                 "cuMemcpyHtoDAsync_v2\tpageable\tdevice\t*\t2097152\t*\tnone\n"
                 "cuMemcpyHtoDAsync_v2\tpageable\tdevice\t2097153\t*\t*\town\n"
                 "cuMemUnmap\t*\t*\t*\t*\t*\tcontext");
  REQUIRE(l.good);
  CHECK(l.profile->entries() == 3);
  CHECK((l.profile->compute_capability() == 90 && l.profile->driver_version() == 13000));
  const auto judged = [&](row_id row, call_facts facts, hostwait_memory source,
                          hostwait_memory destination, bool expected = true) {
    judgement j = depends();
    CHECK(profile_override(*l.profile, row, facts, source, destination, {}, j) == expected);
    return j;
  };
  call_facts facts = copy(4);
  facts.has_stream = true;
  facts.stream = 0x100;
  const auto pageable = HOSTWAIT_MEMORY_PAGEABLE;
  const auto device = HOSTWAIT_MEMORY_DEVICE;
  const judgement small = judged(row_cuMemcpyHtoDAsync_v2, facts, pageable, device);
  CHECK((small.verdict == HOSTWAIT_VERDICT_NONE && small.reason == HOSTWAIT_REASON_NONE));
  facts.bytes = 4 << 20;
  CHECK(judged(row_cuMemcpyHtoDAsync_v2, facts, pageable, device).verdict ==
        HOSTWAIT_VERDICT_STREAM);
  facts.stream = 0;
  CHECK(judged(row_cuMemcpyHtoDAsync_v2, facts, pageable, device).verdict ==
        HOSTWAIT_VERDICT_LEGACY);
  CHECK(judged(row_cuMemcpyHtoDAsync_v2, facts, HOSTWAIT_MEMORY_PINNED, device, false).verdict ==
        HOSTWAIT_VERDICT_DEPENDS);
  CHECK(judged(row_cuMemUnmap, {}, unknown, unknown).verdict == HOSTWAIT_VERDICT_CONTEXT);
  judged(row_cuMemcpyDtoH_v2, facts, unknown, unknown, false);
}

TEST_CASE("arguments in a profile: a number, or the same twice") {
  const loaded l(head +
                 "cuCtxSetLimit\t*\t*\t*\t*\t2\tcontext\n"
                 "cuMemcpyPeer\t*\t*\t*\t*\t=\tnone\n");
  REQUIRE(l.good);
  call_facts facts;
  facts.aux = 2;
  CHECK(l.profile->find(row_cuCtxSetLimit, facts, unknown, unknown) != nullptr);
  CHECK(l.profile->find(row_cuMemcpyPeer, facts, unknown, unknown) == nullptr);
  facts.aux2 = 2;
  CHECK(l.profile->find(row_cuMemcpyPeer, facts, unknown, unknown) != nullptr);
  facts.aux = 3;
  CHECK(l.profile->find(row_cuCtxSetLimit, facts, unknown, unknown) == nullptr);
}

TEST_CASE("a profile is silent where it was not measured") {
  const loaded l(head +
                 "cuMemFreeHost\t*\t*\t*\t*\t*\tcontext\n"
                 "cuLaunchKernel\t*\t*\t*\t*\t*\tnone\n");
  REQUIRE(l.good);
  call_facts facts;
  facts.destination = {reinterpret_cast<const void*>(0x1000), declared::host};
  const auto says = [&](row_id row, const call_facts& given, const surroundings& now) {
    judgement j = depends();
    return profile_override(*l.profile, row, given, unknown, unknown, now, j);
  };
  surroundings now;
  CHECK(says(row_cuMemFreeHost, facts, now));
  now.driver_version = 13000;
  now.compute_capability = 90;
  CHECK(says(row_cuMemFreeHost, facts, now));
  call_facts null = facts;
  null.destination.address = nullptr;
  CHECK_FALSE(says(row_cuMemFreeHost, null, now));
  now.compute_capability = 80;
  CHECK_FALSE(says(row_cuMemFreeHost, facts, now));
  now.compute_capability = 0;
  now.driver_version = 12080;
  CHECK_FALSE(says(row_cuMemFreeHost, facts, now));
  now = {};
  now.launch_blocking = true;
  CHECK_FALSE(says(row_cuLaunchKernel, {}, now));
  CHECK(says(row_cuMemFreeHost, facts, now));
  now.capture_on_stream = true;
  CHECK_FALSE(says(row_cuMemFreeHost, facts, now));
}

TEST_CASE("an open capture stays the reason") {
  const loaded l(head + "cuMemFreeHost\t*\t*\t*\t*\t*\town\n");
  judgement j = depends();
  j.reason = HOSTWAIT_REASON_CAPTURE;
  CHECK(profile_override(*l.profile, row_cuMemFreeHost, {}, unknown, unknown, {}, j));
  CHECK((j.verdict == HOSTWAIT_VERDICT_LEGACY && j.reason == HOSTWAIT_REASON_CAPTURE));
}

TEST_CASE("functions that the table lacks are left out, the rest stands") {
  const loaded l(head +
                 "cuSomethingOfTomorrow\t*\t*\t*\t*\t*\tnone\n"
                 "cuMemUnmap\t*\t*\t*\t*\t*\tnone\n");
  CHECK(l.good);
  CHECK((l.profile->entries() == 1 && l.profile->left_out() == 1));
}

TEST_CASE("what is not understood is refused whole, with its line") {
  struct wrong {
    std::string text;
    unsigned line;
  };
  for (const wrong& w : {wrong{"", 0},
                         {"hostwait-profile 2\n", 1},
                         {"device\tSome GPU\t90\t13000\n", 1},
                         {head + "cuMemUnmap\t*\t*\t*\t*\t*\n", 3},
                         {head + "cuMemUnmap\t*\t*\t*\t*\t*\tmaybe\n", 3},
                         {head + "cuMemUnmap\t*\t*\t*\t*\t*\tnone\tmore\n", 3},
                         {head + "cuMemUnmap\tcotton\t*\t*\t*\t*\tnone\n", 3},
                         {head + "cuMemUnmap\t*\t*\t-1\t*\t*\tnone\n", 3},
                         {head + "cuMemUnmap\t*\t*\t*\t99999999999999999999\t*\tnone\n", 3},
                         {head + "\ncuMemUnmap\t*\t*\t*\t*\t?\tnone\n", 4},
                         {"hostwait-profile 1\ndevice\tSome GPU\tnine\t13000\n", 2}}) {
    const loaded l(w.text);
    INFO(w.text);
    CHECK_FALSE(l.good);
    CHECK(l.problem.line == w.line);
    CHECK(std::strlen(l.problem.what) > 0);
    CHECK(l.profile->entries() == 0);
    CHECK(l.profile->find(row_cuMemUnmap, {}, unknown, unknown) == nullptr);
  }
}

TEST_CASE("a profile has room for a bounded number of lines") {
  std::string text = head;
  for (unsigned i = 0; i < verdict_profile::capacity; ++i)
    text += "cuMemUnmap\t*\t*\t" + std::to_string(i) + "\t" + std::to_string(i) + "\t*\tnone\n";
  CHECK(loaded(text).good);
  const loaded l(text + "cuMemUnmap\t*\t*\t*\t*\t*\tnone\n");
  CHECK_FALSE(l.good);
  CHECK(l.problem.line == verdict_profile::capacity + 3);
}
