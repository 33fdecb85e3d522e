// SPDX-License-Identifier: Apache-2.0
// Copyright The hostwait authors
// HOSTWAIT_OPTIONS: the grammar, every key, and one clear line for each wrong one.
#include "options.hpp"

#include <cstring>
#include <string>

#include "support/catch.hpp"

using namespace hostwait;

namespace {

options parsed(const char* text) {
  options out;
  char error[256] = "";
  INFO(text);
  const bool fine = parse_options(text, out, error, sizeof error);
  INFO(error);
  REQUIRE(fine);
  return out;
}

std::string error_of(const char* text) {
  options out;
  char error[256] = "";
  REQUIRE_FALSE(parse_options(text, out, error, sizeof error));
  return error;
}

}  // namespace

TEST_CASE("nothing given is the default") {
  CHECK(parsed(nullptr).level == policy::all_log);
  CHECK(parsed("").max_sites == 20000);
  CHECK(parsed("::").armed == HOSTWAIT_ALL);
}

TEST_CASE("levels lie over each other, later wins") {
  const options set = parsed("level=log:level=error@copy,explicit:level=allow@free");
  CHECK(policy::action_of(set.level, HOSTWAIT_KIND_COPY) == HOSTWAIT_ERROR);
  CHECK(policy::action_of(set.level, HOSTWAIT_KIND_DEVICE_SYNC) == HOSTWAIT_ERROR);
  CHECK(policy::action_of(set.level, HOSTWAIT_KIND_ASYNC_COPY) == HOSTWAIT_LOG);
  CHECK(policy::action_of(set.level, HOSTWAIT_KIND_FREE) == HOSTWAIT_ALLOW);
  const options all = parsed("level=error@copy:level=fail");
  CHECK(policy::action_of(all.level, HOSTWAIT_KIND_COPY) == HOSTWAIT_FAIL);
}

TEST_CASE("every key is taken") {
  const options set = parsed(
      "threshold_us=50:own_cost=30,4:output=/tmp/a\\:b\\\\c:routes=nolink:deepbind=keep:"
      "depends=refuse:stacks=0:pystacks=64:range=a*,b:capture_range=profiler:trace=0:"
      "arm=queue_full,poll:max_sites=7:threads=loader*:policy=:profile=/q:help=1");
  CHECK(set.threshold_us == 50);
  CHECK(set.own_cost_us == 30);
  CHECK(set.own_cost_gb_per_s == 4);
  CHECK(std::string(set.output) == "/tmp/a:b\\c");
  CHECK_FALSE(set.link_route);
  CHECK_FALSE(set.strip_deepbind);
  CHECK(set.refuse_depends);
  CHECK(set.stacks == 0);
  CHECK(set.pystacks == 64);
  CHECK(set.capture_range_profiler);
  CHECK(set.armed == (HOSTWAIT_ALL | HOSTWAIT_QUEUE_FULL | HOSTWAIT_POLL));
  CHECK(set.max_sites == 7);
  CHECK(std::string(set.threads) == "loader*");
  CHECK(set.help);
}

TEST_CASE("every key of the list is known to the parser") {
  for (const char* key : {
#define HW_OPTION(key, type, initial, help) #key,
#include "options.def"
#undef HW_OPTION
       }) {
    options out;
    char error[256] = "";
    parse_options((std::string(key) + "=\x01").c_str(), out, error, sizeof error);
    INFO(error);
    CHECK(std::strstr(error, "lists the keys") == nullptr);
  }
}

TEST_CASE("wrong options give one line with option, value and remedy") {
  CHECK_THAT(error_of("level=loud"),
             ContainsSubstring("'loud'") && ContainsSubstring("use allow, log, fail"));
  CHECK_THAT(error_of("level=fail@copi"),
             ContainsSubstring("'copi'") && ContainsSubstring("device_sync"));
  CHECK_THAT(error_of("colour=red"), ContainsSubstring("'colour'") && ContainsSubstring("help=1"));
  CHECK_THAT(error_of("level"), ContainsSubstring("key=value"));
  CHECK_THAT(error_of("arm=copy"), ContainsSubstring("queue_full"));
  CHECK_THAT(error_of("trace=1"), ContainsSubstring("sums only"));
  CHECK_THAT(error_of("policy=/rules"), ContainsSubstring("no rules file"));
  CHECK_THAT(error_of("arm=unlisted,free"), ContainsSubstring("use queue_full, poll, unlisted"));
  CHECK_THAT(error_of("max_sites=0"), ContainsSubstring("1 to"));
  CHECK_THAT(error_of("max_sites=99999999999"), ContainsSubstring("1 to"));
  CHECK_THAT(error_of("stacks=65"), ContainsSubstring("0 to 64"));
  CHECK_THAT(error_of("own_cost=1,2,3"), ContainsSubstring("GB_PER_S"));
  CHECK_THAT(error_of("own_cost=1,0"), ContainsSubstring("GB_PER_S"));
  CHECK_THAT(error_of("window=5,4"), ContainsSubstring("END later than BEGIN"));
  CHECK_THAT(error_of("window=5"), ContainsSubstring("BEGIN,END"));
  const std::string huge = "output=" + std::string(10000, 'x');
  CHECK(error_of(huge.c_str()).size() < 256);
}

TEST_CASE("the list names every key with its help") {
  char text[8192];
  const std::size_t n = describe_options(text, sizeof text);
  CHECK(n == std::strlen(text));
  CHECK(n < 4096);  // the shim prints it from a buffer of this size
#define HW_OPTION(key, type, initial, help) \
  CHECK_THAT(std::string(text), ContainsSubstring("  " #key "="));
#include "options.def"
#undef HW_OPTION
}
