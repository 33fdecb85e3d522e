// SPDX-License-Identifier: Apache-2.0
// Copyright The hostwait authors
// Broken captures and holders, from the record to the table and the JSON.
#include <cstring>
#include <nlohmann/json.hpp>

#include "report/report.hpp"
#include "support/catch.hpp"
#include "support/record_builder.hpp"
#include "support/report_of.hpp"

using namespace hostwait;
using hostwait::test::record_builder;
using hostwait::test::report_of;

namespace {

// training_run with a capture begun at app.py:5 and broken by site 1, the stream wait.
record_builder with_capture(std::uint32_t flags = 0) {
  record_builder builder = hostwait::test::training_run("r", 4711);
  hostwait_record_site begin{};
  begin.call = builder.call("cuStreamBeginCapture_v2", HOSTWAIT_KIND_UNLISTED);
  begin.python = builder.python(0, "/home/me/app.py", "record", 5);
  hostwait_record_capture one{};
  one.begin_site = builder.site(begin);
  one.site = 1;
  one.begin_tid = 4711;
  one.tid = 4712;
  std::strcpy(one.begin_thread, "python3");
  std::strcpy(one.thread, "loader");
  one.mode = 0;
  one.result = 900;
  one.flags = flags;
  one.begin_mono_ns = 2000000;
  one.mono_ns = 5000000;
  one.count = 3;
  one.violations = 2;
  builder.add(HOSTWAIT_SECTION_CAPTURES, one);
  return builder;
}

record_builder with_holder() {
  record_builder builder = hostwait::test::training_run("r", 4711);
  builder.at<hostwait_record_counters>(HOSTWAIT_SECTION_COUNTERS, 2).held = 4;
  hostwait_record_holder one{};
  one.site = 1;
  one.holder_call = builder.at<hostwait_record_site>(HOSTWAIT_SECTION_SITES, 2).call;
  one.holder_site = 3;
  one.holder_tid = 4713;
  one.tid = 4711;
  std::strcpy(one.holder_thread, "freeing");
  std::strcpy(one.thread, "python3");
  one.count = 4;
  one.total_ns = 9000000;
  one.max_ns = 5000000;
  builder.add(HOSTWAIT_SECTION_HOLDERS, one);
  return builder;
}

}  // namespace

TEST_CASE("a broken capture names both threads and both places") {
  const run_report report = report_of({with_capture()});
  const std::string text = text_report(report, {});
  CHECK_THAT(text,
             ContainsSubstring("capture broken: cudaStreamSynchronize on thread 4712 loader at "
                               "train.py:42 step < libtorch_cuda.so+0x1234\n"
                               "  the capture (global mode) was begun on thread 4711 python3 at "
                               "app.py:5 record, 3.0 ms before; 3 times, 2 violations\n"));
  const auto document = nlohmann::json::parse(json_report(report));
  REQUIRE(document["captures"].size() == 1);
  const auto& one = document["captures"][0];
  CHECK(one["begin"]["thread"] == "python3");
  CHECK(one["begin"]["call"] == "cuStreamBeginCapture_v2");
  CHECK(one["begin"]["where"] == "app.py:5 record");
  CHECK(one["broken_by"]["thread"] == "loader");
  CHECK(one["broken_by"]["tid"] == 4712);
  CHECK(one["broken_by"]["call"] == "cuStreamSynchronize");
  CHECK(one["broken_by"]["fingerprint"].get<std::string>().size() == 16);
  CHECK(one["mode"] == "global");
  CHECK(one["result"] == 900);
  CHECK(one["count"] == 3);
  CHECK(one["open_ns"] == 3000000);
}

TEST_CASE("refused, possible and unknown begins are said") {
  CHECK_THAT(text_report(report_of({with_capture(HOSTWAIT_CAPTURE_REFUSED)}), {}),
             ContainsSubstring("capture saved: refused cudaStreamSynchronize on thread"));
  CHECK_THAT(text_report(report_of({with_capture(HOSTWAIT_CAPTURE_POSSIBLE)}), {}),
             ContainsSubstring("capture broken, probably this one: cudaStreamSynchronize"));
  record_builder builder = with_capture();
  auto& one = builder.at<hostwait_record_capture>(HOSTWAIT_SECTION_CAPTURES, 0);
  one.begin_site = HOSTWAIT_CAPTURE_NO_SITE;
  one.begin_tid = 0;
  one.begin_thread[0] = '\0';
  one.begin_mono_ns = 0;
  CHECK_THAT(text_report(report_of({builder}), {}),
             ContainsSubstring("was begun on an unknown thread; 3 times"));
}

TEST_CASE("equal broken captures of several processes are one") {
  const run_report report = report_of({with_capture(), with_capture()});
  REQUIRE(report.captures.size() == 1);
  CHECK(report.captures[0].count == 6);
  CHECK(report.captures[0].violations == 4);
  CHECK(report_of({with_capture(), with_capture(HOSTWAIT_CAPTURE_REFUSED)}).captures.size() == 2);
}

TEST_CASE("a finding says who held it") {
  const run_report report = report_of({with_holder()});
  // The wait is joined to its copy, and brings its holders.
  REQUIRE(report.findings[0].held_by.size() == 1);
  CHECK_THAT(text_report(report, {}),
             ContainsSubstring("held 4 by cuMemFree_v2 on thread freeing at train.py:77 main < "
                               "libtorch_cuda.so+0x9999\n"));
  const auto document = nlohmann::json::parse(json_report(report));
  const auto& holder = document["findings"][0]["held_by"][0];
  CHECK(holder["call"] == "cuMemFree_v2");
  CHECK(holder["thread"] == "freeing");
  CHECK(holder["count"] == 4);
  CHECK(holder["ns"]["max"] == 5000000);
  CHECK(holder["where"] == "train.py:77 main < libtorch_cuda.so+0x9999");
  CHECK(document["findings"][1]["held_by"].empty());
  CHECK(document["captures"].empty());
}

TEST_CASE("relations with impossible references are no more than empty") {
  record_builder builder = with_holder();
  auto& one = builder.at<hostwait_record_holder>(HOSTWAIT_SECTION_HOLDERS, 0);
  one.holder_site = 999999;
  one.holder_call = 888888;
  hostwait_record_capture capture{};
  capture.begin_site = 77777;
  capture.site = 66666;
  capture.mode = 9;
  capture.count = 1;
  std::memset(capture.thread, '\x1b', sizeof capture.thread);
  capture.tid = 3;
  builder.add(HOSTWAIT_SECTION_CAPTURES, capture);
  const run_report report = report_of({builder});
  const std::string text = text_report(report, {});
  CHECK(text.find('\x1b') == std::string::npos);
  CHECK_THAT(text, ContainsSubstring("capture broken: a call on thread 3"));
  CHECK_THAT(text, ContainsSubstring("(unknown mode)"));
}
