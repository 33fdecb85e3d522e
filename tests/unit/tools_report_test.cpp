// SPDX-License-Identifier: Apache-2.0
// Copyright The hostwait authors
// The table and the JSON, to the letter, and what hostile names become in both.
#include <unistd.h>

#include <cstring>
#include <nlohmann/json.hpp>

#include "report/escape.hpp"
#include "report/report.hpp"
#include "support/catch.hpp"
#include "support/record_builder.hpp"
#include "support/report_of.hpp"

using namespace hostwait;
using hostwait::test::record_builder;

namespace {

run_report report_of(const std::vector<record_builder>& builders) {
  return hostwait::test::report_of(builders, "./hostwait-python3-HOST-4711-1-aa.hwr");
}

std::string text_of(const record_builder& builder, const text_style& style = {}) {
  return text_report(report_of({builder}), style);
}

record_builder hostile() {
  record_builder builder = hostwait::test::training_run("r", 4711);
  hostwait_record_site& site = builder.at<hostwait_record_site>(HOSTWAIT_SECTION_SITES, 2);
  site.label = builder.string(
      "\x1b[2J\nFAKE \xe2\x80\xae"
      "evil\xff");
  site.python = builder.python(0, "/tmp/\x1b]0;x\a.py", "f\r\t\xc2\x9b", 1);
  builder.header.program = builder.string("py\x1b[31mthon");
  std::strcpy(builder.header.why_blind, "\x1b[1mblind\x7f");
  std::strcpy(builder.header.driver_text, "\x1b[5m580");
  std::strcpy(builder.header.routes, "dlsym, \x1b");
  builder.header.flags = HOSTWAIT_RECORD_BLIND;
  return builder;
}

}  // namespace

TEST_CASE("the table, to the letter") {
  text_style style;
  style.next_command = true;
  CHECK(
      text_of(hostwait::test::training_run("r", 4711), style) ==
      "hostwait: 2 findings in python3 (4711): 401 ms waited of 9.8 s; driver 580.159; routes "
      "dlsym, cuGetProcAddress\n"
      " call                                 kind        calls waited latent refused    total     "
      "max  where\n"
      " cudaMemcpyAsync + StreamSynchronize  async_copy    100    100      0       0   398 ms  "
      "4.1 ms  train.py:42 step < libtorch_cuda.so+0x1234\n"
      " cudaFree                             free            8      1      7       0   4.0 ms  "
      "4.0 ms  train.py:77 main < libtorch_cuda.so+0x9999\n"
      "advice, before and after in docs/advice.md:\n"
      " async_copy  use pinned host memory: from and to ordinary memory an async copy waits\n"
      " free        keep the block for the next step, or free in stream order (cudaFreeAsync)\n"
      "record ./hostwait-python3-HOST-4711-1-aa.hwr    next: hostwait report "
      "./hostwait-python3-HOST-4711-1-aa.hwr\n");
}

TEST_CASE("a terminal's width cuts lines, a pipe does not") {
  text_style style;
  style.width = 100;
  const std::string text = text_of(hostwait::test::training_run("r", 4711), style);
  const std::string row = text.substr(text.find(" cudaFree"));
  CHECK(columns_of(row.substr(0, row.find('\n'))) == 100);
  CHECK_THAT(row.substr(0, row.find('\n')), Catch::Matchers::EndsWith("…"));
}

TEST_CASE("a limit says how many it hides") {
  text_style style;
  style.limit = 1;
  const std::string text = text_of(hostwait::test::training_run("r", 4711), style);
  CHECK(text.find(" cudaFree") == std::string::npos);
  CHECK_THAT(text, ContainsSubstring("and 1 more; --limit 0 shows all"));
}

TEST_CASE("blind, full, config error, unsealed and hanging are said before the table") {
  record_builder builder = hostwait::test::training_run("r", 4711);
  builder.header.flags =
      HOSTWAIT_RECORD_BLIND | HOSTWAIT_RECORD_FULL | HOSTWAIT_RECORD_CONFIG_ERROR;
  builder.header.dropped_sites = 12;
  builder.header.state = HOSTWAIT_RECORD_OPEN;
  builder.header.end_mono_ns = 0;
  std::strcpy(builder.header.why_blind,
              "cuFoo: 2 look-ups gave an unknown function in libx.so\ndlmopen");
  auto& thread = builder.at<hostwait_record_thread>(HOSTWAIT_SECTION_THREADS, 1);
  thread.in_call = 2;
  thread.in_call_since_ns = 5;
  const std::string text = text_of(builder);
  const auto document = nlohmann::json::parse(json_report(report_of({builder})));
  CHECK(document["coverage"]["unmapped"].size() == 1);
  CHECK(document["coverage"]["why"].size() == 2);
  const std::size_t table = text.find(" call ");
  for (const char* part :
       {"blind: some driver calls could not be seen:\n  cuFoo: 2 look-ups gave "
        "an unknown function in "
        "libx.so\n  dlmopen",
        "had no room for more sites (max_sites, the disk, or a limit on file sizes): "
        "12 look-ups fell into \"other\"",
        "config error: HOSTWAIT_OPTIONS", "ended without closing its record",
        "thread 4711 python3 was at the end in cuStreamSynchronize"}) {
    CHECK(text.find(part) < table);
  }
  CHECK(text.find("waited of") == std::string::npos);  // its end is not known
}

TEST_CASE("no data is not clean") {
  record_builder builder;
  builder.header.pid = 5;
  builder.header.program = builder.string("app");
  const std::string text = text_of(builder);
  CHECK_THAT(text, ContainsSubstring("0 findings in app (5): no CUDA driver call seen"));
  CHECK_THAT(text, ContainsSubstring("does not mean that nothing waited"));
}

TEST_CASE("violations, held calls, labels and ranges are shown") {
  record_builder builder = hostwait::test::training_run("r", 4711);
  auto& counters = builder.at<hostwait_record_counters>(HOSTWAIT_SECTION_COUNTERS, 3);
  counters.violations = 8;
  counters.held = 2;
  auto& site = builder.at<hostwait_record_site>(HOSTWAIT_SECTION_SITES, 2);
  site.label = builder.string("loss");
  site.range = builder.range("train/step");
  const std::string text = text_of(builder);
  CHECK_THAT(text, ContainsSubstring("hostwait: 2 findings, 8 violations in python3"));
  CHECK_THAT(text, ContainsSubstring("label loss  range train/step  held 2  violations 8\n"));
}

TEST_CASE("hostile strings reach neither the terminal nor the JSON raw") {
  for (const std::string& text : {text_of(hostile()), json_report(report_of({hostile()}))}) {
    for (const char c : text) {
      const bool visible = static_cast<unsigned char>(c) >= 0x20 && c != 0x7f;
      CHECK((visible || c == '\n'));
    }
    CHECK(text.find("\xe2\x80\xae") == std::string::npos);
    CHECK(text.find("\xc2\x9b") == std::string::npos);
    CHECK(text.find('\xff') == std::string::npos);
    CHECK(text.find("\nFAKE") == std::string::npos);
  }
  CHECK_THAT(text_of(hostile()), ContainsSubstring("\\x1b[2J\\nFAKE \\u202eevil\\xff"));
}

TEST_CASE("escapes keep what is harmless") {
  CHECK(for_terminal("naïve ✓ 漢字 \\n") == "naïve ✓ 漢字 \\n");
  CHECK(for_terminal("\xed\xa0\x80") == "\\xed\\xa0\\x80");  // a surrogate
  CHECK(for_terminal("\xc0\xaf") == "\\xc0\\xaf");           // overlong
  CHECK(for_terminal("\xf0\x9f\x98") == "\\xf0\\x9f\\x98");  // cut
  CHECK(for_terminal("\xe2\x81\xa6x\xe2\x80\x8b") == "\\u2066x\\u200b");
  CHECK(columns_of("…x") == 2);
  CHECK(cut_to("héllo", 3) == "hé…");
  CHECK(cut_to("abc", 3) == "abc");
}

TEST_CASE("the JSON holds what INTERFACES names") {
  const auto document = nlohmann::json::parse(
      json_report(report_of({hostwait::test::training_run("0123abcd", 4711)})));
  CHECK(document["schema"] == "hostwait.report/1");
  CHECK(document["coverage"]["blind"] == false);
  CHECK(document["coverage"]["why"].empty());
  CHECK(document["coverage"]["unmapped"].empty());
  CHECK(document["processes"][0]["run_id"] == "0123abcd");
  CHECK(document["processes"][0]["pid"] == 4711);
  CHECK(document["processes"][0]["run_ns"] == 9800000000u);
  REQUIRE(document["findings"].size() == 2);
  const auto& copy = document["findings"][0];
  CHECK(copy["fingerprint"].get<std::string>().size() == 16);
  CHECK(copy["kind"] == "async_copy");
  CHECK(copy["call"] == "cuMemcpyDtoHAsync_v2 + cuStreamSynchronize");
  CHECK(copy["runtime_call"] == "cudaMemcpyAsync + StreamSynchronize");
  CHECK(copy["verdict"] == "stream");
  CHECK(copy["waited"] == 100);
  CHECK(copy["ns"]["total"] == 398000000);
  CHECK(copy["ns"]["histogram"].size() == 32);
  CHECK(copy["python"][1] ==
        nlohmann::json{
            {"file", "/home/me/train.py"}, {"function", "step"}, {"library", false}, {"line", 42}});
  CHECK(copy["native"][0]["offset"] == 0x1234);
  CHECK(copy["thread_names"] == nlohmann::json{"pt_autograd_0", "python3"});
  CHECK(copy["lines"] == nlohmann::json{42});
}

TEST_CASE("times for people") {
  CHECK(human_time(0) == "0 ns");
  CHECK(human_time(999) == "999 ns");
  CHECK(human_time(4100000) == "4.1 ms");
  CHECK(human_time(99960000) == "100 ms");
  CHECK(human_time(398000000) == "398 ms");
  CHECK(human_time(999600000) == "1.0 s");
  CHECK(human_time(9800000000) == "9.8 s");
  CHECK(human_time(7200000000000) == "7200 s");
}

TEST_CASE("no terminal, no width") {
  int ends[2];
  REQUIRE(::pipe(ends) == 0);
  CHECK(terminal_width(ends[1]) == 0);
  ::close(ends[0]);
  ::close(ends[1]);
}
