// SPDX-License-Identifier: Apache-2.0
// Copyright The hostwait authors
// Results as lines, JSON, CSV and text, and the profile made of them.
#include "profile.hpp"

#include <memory>

#include "probe/output.hpp"
#include "probe/profile_writer.hpp"
#include "probe/result.hpp"
#include "probe/worker.hpp"
#include "support/catch.hpp"

using namespace hostwait;
using namespace hostwait::probe;

namespace {

constexpr stream_kind busy_kinds[] = {stream_kind::legacy, stream_kind::blocking,
                                      stream_kind::nonblocking, stream_kind::per_thread};

// An upload on the busy stream, as the probe would store it.
result upload(std::uint64_t bytes, stream_kind busy, bool blocked, hostwait_memory source) {
  static const char somewhere = 0;
  result r;
  r.id = "copy/upload/" + std::to_string(bytes);
  r.call = "an upload, \"quoted\"";
  r.symbol = "cuMemcpyHtoDAsync_v2";
  r.in_table = true;
  r.facts.source = {&somewhere, declared::host};
  r.facts.destination = {&somewhere, declared::device};
  r.facts.bytes = bytes;
  r.facts.has_stream = true;
  r.facts.stream = busy == stream_kind::legacy ? 0 : busy == stream_kind::per_thread ? 2 : 0x100;
  r.own = r.busy = busy;
  r.source = source;
  r.destination = HOSTWAIT_MEMORY_DEVICE;
  r.blocked = blocked;
  r.ns = 5000;
  r.idle_ns = 1000;
  r.idle_max_ns = 90000;
  r.own_cost_ns = 20000;
  r.own_cost_known = true;
  r.around.queued_since_idle = 1;
  judge_again(r);
  return r;
}

report uploads(hostwait_memory source) {
  report all;
  all.device = "Some GPU";
  all.compute_capability = 90;
  all.driver_version = 13000;
  for (std::uint64_t bytes : {3u << 20, 4u << 20, 8u << 20})
    for (stream_kind busy : busy_kinds)
      all.rows.push_back(upload(bytes, busy, bytes > 3u << 20, source));
  return all;
}

}  // namespace

TEST_CASE("a job survives its line") {
  const job j{"copy/x/y", {stream_kind::legacy, stream_kind::per_thread}, 20, 7, true};
  job back;
  REQUIRE(from_line(to_line(j), back));
  CHECK((back.id == j.id && back.busy == j.busy && back.spin_ns == 20 && back.idle_ns == 7));
  CHECK(back.idle_only);
  job bad;
  CHECK_FALSE(from_line("copy/x/y", bad));
  CHECK_FALSE(from_line("copy/x/y\tnowhere,\t1\t1\tall", bad));
}

TEST_CASE("a result survives line and file") {
  report all = uploads(HOSTWAIT_MEMORY_PINNED);
  all.rows[0].note = "a note";
  all.limits.push_back({"limit/x", "the x", "bytes", 12, ""});
  result back;
  limit none;
  bool is_limit = true;
  REQUIRE(from_line(to_line(all.rows[0]), back, is_limit, none));
  CHECK_FALSE(is_limit);
  CHECK((back.id == all.rows[0].id && back.note == "a note" && back.ns == 5000));
  CHECK_FALSE(from_line("no json", back, is_limit, none));
  report read;
  std::string why;
  REQUIRE(from_json(to_json(all), read, why));
  REQUIRE(read.rows.size() == all.rows.size());
  CHECK((read.limits.size() == 1 && read.limits[0].value == 12));
  for (std::size_t i = 0; i < all.rows.size(); ++i) {
    result r = read.rows[i];
    judge_again(r);
    CHECK(r.verdict.verdict == all.rows[i].verdict.verdict);
    CHECK(r.verdict.reason == all.rows[i].verdict.reason);
    CHECK(r.agree == all.rows[i].agree);
    CHECK(r.facts.stream == all.rows[i].facts.stream);
  }
  CHECK_FALSE(from_json("{\"schema\":\"other\"}", read, why));
  CHECK_FALSE(from_json("{", read, why));
}

TEST_CASE("csv has a line for each row, quoted where needed") {
  const std::string csv = to_csv(uploads(HOSTWAIT_MEMORY_PINNED));
  CHECK(std::count(csv.begin(), csv.end(), '\n') == 13);
  CHECK(csv.find("\"an upload, \"\"quoted\"\"\"") != csv.npos);
}

TEST_CASE("text and its ending tell what is wrong and what idles too long") {
  report all = uploads(HOSTWAIT_MEMORY_PINNED);
  result idle = all.rows.back();
  idle.busy = stream_kind::none;
  idle.own_cost_ns = 20000;
  compare(idle);
  all.rows.push_back(idle);
  // Pinned memory does not wait: eight of the rows claim that it does.
  const summary s = summarize(all);
  CHECK((s.experiments == 12 && s.wrong == 8 && s.agree == 4 && s.depend == 0));
  const std::string ending = to_ending(all);
  CHECK(ending.find("wrong: copy/upload/4194304 on legacy") != ending.npos);
  CHECK(ending.find("idle: 1 rows over their own cost; 0 would become waited") != ending.npos);
  CHECK(ending.ends_with("probe: 12 experiments, 4 verdicts agree, 0 depend, 8 wrong\n"));
  CHECK(to_text(all).find("yes!") != std::string::npos);
}

TEST_CASE("a profile says what was measured and is silent between sizes that differ") {
  const std::string text = to_profile(uploads(HOSTWAIT_MEMORY_PINNED));
  auto p = std::make_unique<verdict_profile>();
  profile_problem problem;
  REQUIRE(p->parse(text.data(), text.size(), problem));
  CHECK(p->entries() == 2);
  result r = upload(0, stream_kind::nonblocking, false, HOSTWAIT_MEMORY_PINNED);
  const auto at = [&](std::uint64_t bytes) {
    r.facts.bytes = bytes;
    const profile_entry* e =
        p->find(row_cuMemcpyHtoDAsync_v2, r.facts, HOSTWAIT_MEMORY_PINNED, HOSTWAIT_MEMORY_DEVICE);
    return e ? static_cast<int>(e->what) : -1;
  };
  CHECK(at(4) == static_cast<int>(profile_entry::waits::nothing));
  CHECK(at(3u << 20) == static_cast<int>(profile_entry::waits::nothing));
  CHECK(at((3u << 20) + 1) == -1);
  CHECK(at(4u << 20) == static_cast<int>(profile_entry::waits::own));
  CHECK(at(64u << 20) == static_cast<int>(profile_entry::waits::own));
}

TEST_CASE("a profile tells the null stream's scope from every stream's") {
  report all;
  const auto add = [&](const char* symbol, stream_kind busy, bool blocked) {
    result r;
    r.symbol = symbol;
    r.in_table = true;
    r.own = stream_kind::legacy;
    r.busy = busy;
    r.blocked = blocked;
    all.rows.push_back(r);
  };
  for (stream_kind busy : busy_kinds) {
    add("cuDestroyExternalMemory", busy, busy != stream_kind::nonblocking);
    add("cuCtxDetach", busy, true);
    add("cuMemMap", busy, false);
    add("cuMulticastUnbind", busy, busy == stream_kind::nonblocking);
  }
  // One stream that its own scope does not reach: nothing follows.
  add("cuMemAllocPitch_v2", stream_kind::nonblocking, false);
  const std::string text = to_profile(all);
  CHECK(text.find("cuDestroyExternalMemory\t-\t-\t*\t*\t*\town\n") != text.npos);
  CHECK(text.find("cuCtxDetach\t-\t-\t*\t*\t*\tcontext\n") != text.npos);
  CHECK(text.find("cuMemMap\t-\t-\t*\t*\t*\tnone\n") != text.npos);
  CHECK(text.find("cuMulticastUnbind") == text.npos);  // no verdict fits
  CHECK(text.find("cuMemAllocPitch_v2") == text.npos);
  CHECK(without_rule(all).empty());
  for (result& r : all.rows) judge_again(r);
  CHECK(without_rule(all).find("cuCtxDetach") != std::string::npos);
  CHECK(without_rule(all).find("cuMulticastUnbind\t-\t-\t*\t*\t*\tdepends\n") != std::string::npos);
}

TEST_CASE("what holds for a null pointer is not said of others") {
  report all;
  result r;
  r.symbol = "cuMemFree_v2";
  r.in_table = true;
  r.facts.destination.as = declared::device;
  r.own = r.busy = stream_kind::legacy;
  all.rows.push_back(r);
  CHECK(to_profile(all).find("cuMemFree_v2") == std::string::npos);
}
