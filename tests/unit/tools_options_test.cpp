// SPDX-License-Identifier: Apache-2.0
// Copyright The hostwait authors
// The tool's check of options, held against the shim's parser: neither may accept what the other
// refuses.
#include "options.hpp"  // the shim's

#include "failure.hpp"
#include "options/check.hpp"
#include "support/catch.hpp"

using namespace hostwait;

namespace {

bool tool_accepts(const std::string& text) {
  try {
    check_options_text(text);
    return true;
  } catch (const failure& wrong) {
    CHECK(wrong.status() == 2);
    CHECK(std::string(wrong.what()).find('\n') == std::string::npos);
    return false;
  }
}

bool shim_accepts(const std::string& text) {
  options parsed;
  char error[512] = {};
  return parse_options(text.c_str(), parsed, error, sizeof error);
}

std::string complaint(const std::string& text) {
  try {
    check_options_text(text);
  } catch (const failure& wrong) {
    return wrong.what();
  }
  return "";
}

}  // namespace

TEST_CASE("tool and shim agree on every option") {
  const char* texts[] = {"",
                         ":",
                         "::level=log:",
                         "level=log",
                         "level=allow",
                         "level=fail@sync",
                         "level=error@copy,free",
                         "level=abort@explicit",
                         "level=trap@all",
                         "level=log@queue_full,poll,unlisted",
                         "level=log:level=error@copy,explicit:level=allow@free",
                         "level=",
                         "level=erorr",
                         "level=log@",
                         "level=log@copy,",
                         "level=log@copi",
                         "level=@copy",
                         "level",
                         "nonsense=1",
                         "=1",
                         "threshold_us=0",
                         "threshold_us=100000000",
                         "threshold_us=100000001",
                         "threshold_us=-1",
                         "threshold_us=1x",
                         "threshold_us=",
                         "threshold_us=0000000001",
                         "own_cost=20",
                         "own_cost=20,2",
                         "own_cost=20,0",
                         "own_cost=,2",
                         "own_cost=20,",
                         "window=1,2",
                         "window=5,0",
                         "window=999999999999998,999999999999999",
                         "window=2,2",
                         "window=5",
                         "window=1,2,3",
                         "window=1000000000000000,0",
                         "window=-1,2",
                         "own_cost=1,2,3",
                         "own_cost=1000001",
                         "output=/tmp",
                         "output=",
                         "output=/a\\:b\\\\c",
                         "routes=all",
                         "routes=nolink",
                         "routes=none",
                         "deepbind=strip",
                         "deepbind=keep",
                         "deepbind=",
                         "depends=allow",
                         "depends=refuse",
                         "depends=maybe",
                         "stacks=0",
                         "stacks=64",
                         "stacks=65",
                         "pystacks=64",
                         "pystacks=65",
                         "range=train*,eval",
                         "capture_range=profiler",
                         "capture_range=all",
                         "capture_range=x",
                         "trace=0",
                         "trace=1",
                         "trace=2",
                         "trace=yes",
                         "arm=queue_full",
                         "arm=queue_full,poll",
                         "arm=unlisted",
                         "arm=unlisted,free",
                         "arm=copy",
                         "arm=",
                         "arm=poll,",
                         "max_sites=1",
                         "max_sites=0",
                         "max_sites=10000000",
                         "max_sites=10000001",
                         "threads=pt_*",
                         "policy=",
                         "policy=/x",
                         "profile=/y",
                         "help=1",
                         "help=0",
                         "help=2",
                         "level=log\\:x",
                         "level\\=log",
                         "range=a=b"};
  for (const char* text : texts) {
    INFO(text);
    CHECK(tool_accepts(text) == shim_accepts(text));
  }
  for (const auto& [key, most] : {std::pair<std::string, std::size_t>{"output", 4095},
                                  {"range", 511},
                                  {"threads", 511},
                                  {"profile", 1023}}) {
    for (const std::size_t length : {most, most + 1}) {
      const std::string text = key + '=' + std::string(length, 'x');
      INFO(key << ' ' << length);
      CHECK(tool_accepts(text) == shim_accepts(text));
      CHECK(tool_accepts(text) == (length == most));
    }
  }
}

TEST_CASE("every key's default is accepted by both") {
  for (const option_spec& spec : option_specs()) {
    if (*spec.initial == '\0') continue;
    const std::string text = option_text(spec.key, spec.initial);
    INFO(text);
    CHECK(tool_accepts(text));
    CHECK(shim_accepts(text));
  }
}

TEST_CASE("a complaint names option, value and remedy") {
  CHECK_THAT(complaint("level=erorr"), ContainsSubstring("level") && ContainsSubstring("erorr") &&
                                           ContainsSubstring("abort"));
  CHECK_THAT(complaint("level=log@copi"),
             ContainsSubstring("copi") && ContainsSubstring("async_copy"));
  CHECK_THAT(complaint("stacks=99"), ContainsSubstring("stacks") && ContainsSubstring("0 to 64"));
  CHECK_THAT(complaint("colour=red"),
             ContainsSubstring("colour") && ContainsSubstring("threshold_us"));
  CHECK_THAT(complaint("level"), ContainsSubstring("key=value"));
}

TEST_CASE("values travel through the escapes unchanged") {
  for (const std::string value : {"plain", "/a:b", "\\", "a\\:b", "x=y", ""}) {
    const auto options = split_options(option_text("range", value));
    REQUIRE(options.size() == 1);
    CHECK(options[0].first == "range");
    CHECK(options[0].second == value);
  }
}

TEST_CASE("levels as numbers") {
  std::string remedy;
  const auto level = parse_level("error@copy,explicit", remedy);
  REQUIRE(level.has_value());
  CHECK(level->action == 3);
  CHECK(level->kinds == 0xf);
  CHECK(parse_level("log", remedy)->kinds == 0x7ff);
  CHECK_FALSE(parse_level("log@", remedy).has_value());
}
