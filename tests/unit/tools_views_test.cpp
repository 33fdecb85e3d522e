// SPDX-License-Identifier: Apache-2.0
// Copyright The hostwait authors
// What stands beside the table: groups, stacks for flame graphs, advice, latent rows, cost, colour.
#include <nlohmann/json.hpp>
#include <set>

#include "report/advice.hpp"
#include "report/groups.hpp"
#include "report/report.hpp"
#include "report/stacks.hpp"
#include "support/catch.hpp"
#include "support/record_builder.hpp"
#include "support/report_of.hpp"

using namespace hostwait;
using hostwait::test::record_builder;
using hostwait::test::report_of;
using hostwait::test::training_run;

namespace {

std::string text_of(const std::vector<record_builder>& builders, const text_style& style) {
  return text_report(report_of(builders), style);
}

// The training run with its free not having waited.
record_builder with_latent_free() {
  record_builder builder = training_run("r", 4711);
  auto& counters = builder.at<hostwait_record_counters>(HOSTWAIT_SECTION_COUNTERS, 3);
  counters.waited = 0;
  counters.latent = 8;
  counters.waited_ns = 0;
  return builder;
}

const group& named(const std::vector<group>& groups, const std::string& name) {
  for (const group& each : groups) {
    if (each.name == name) return each;
  }
  FAIL("no group " << name);
  return groups.front();
}

}  // namespace

TEST_CASE("groups add up what has the same line, function, call, thread or process") {
  const run_report report = report_of({training_run("r", 4711), training_run("r", 4800)});
  const std::vector<group> lines = group_by(report, grouping::line);
  REQUIRE(lines.size() == 2);
  CHECK(lines[0].name == "train.py:42");
  CHECK(lines[0].sum.calls == 200);
  CHECK(lines[0].sum.waited == 200);
  CHECK(lines[0].sum.waited_ns == 2 * 397000000u);
  CHECK(lines[0].findings == 1);
  CHECK(lines[0].wall_ns == 2 * 9800000000u);
  CHECK(lines[1].name == "train.py:77");

  CHECK(group_by(report, grouping::function).at(0).name == "step (train.py)");
  CHECK(group_by(report, grouping::call).at(1).name == "cudaFree");
  CHECK(group_by(report, grouping::range).at(0).name == "no range");

  const std::vector<group> threads = group_by(report, grouping::thread);
  CHECK(threads.size() == 4);
  const group& worker = named(threads, "pt_autograd_0 (4712) of python3 (4711)");
  CHECK(worker.sum.calls == 40);
  CHECK(worker.sum.waited_ns == 167000000);
  // 60 copies, each with its stream wait, and 8 frees: what one pass makes is counted once.
  CHECK(named(threads, "python3 (4711) of python3 (4711)").sum.calls == 108);

  const std::vector<group> processes = group_by(report, grouping::process);
  REQUIRE(processes.size() == 2);
  CHECK(processes[0].findings == 2);
  CHECK(processes[0].wall_ns == 9800000000u);
}

TEST_CASE("files with the same name in two folders are two lines") {
  record_builder builder = training_run("r", 1);
  builder.at<hostwait_record_site>(HOSTWAIT_SECTION_SITES, 2).python =
      builder.python(0, "/home/me/other/train.py", "main", 42);
  const std::vector<group> lines = group_by(report_of({builder}), grouping::line);
  REQUIRE(lines.size() == 2);
  CHECK(lines[0].name == lines[1].name);
}

TEST_CASE("the table of groups, to the letter") {
  text_style style;
  style.by = grouping::line;
  const std::string text = text_of({training_run("r", 4711)}, style);
  CHECK_THAT(text,
             ContainsSubstring(
                 "\n line         findings   calls  waited  latent refused wait time  of wall\n"
                 " train.py:42         1     100     100       0       0    397 ms    4.1 %\n"
                 " train.py:77         1       8       1       7       0    4.0 ms    0.0 %\n"
                 "record "));
  style.limit = 1;
  CHECK_THAT(text_of({training_run("r", 4711)}, style),
             ContainsSubstring(" and 1 more; --limit 0 shows all\n"));
  CHECK(groupings().size() == 6);
  CHECK(groupings().at("thread") == grouping::thread);
  CHECK(groupings().count("finding") == 0);
}

TEST_CASE("groups in JSON") {
  const auto document =
      nlohmann::json::parse(json_report(report_of({training_run("r", 4711)}), 1, grouping::line));
  CHECK(document["by"] == "line");
  CHECK(document["groups_total"] == 2);
  REQUIRE(document["groups"].size() == 1);
  CHECK(document["groups"][0]["name"] == "train.py:42");
  CHECK(document["groups"][0]["waited_ns"] == 397000000);
}

TEST_CASE("calls that would wait stand apart, behind those that did") {
  const std::string text = text_of({with_latent_free()}, {});
  const std::size_t copy = text.find(" cudaMemcpyAsync + ");
  const std::size_t apart = text.find("\n would wait on a busier GPU");
  const std::size_t freed = text.find(" cudaFree ");
  REQUIRE(apart != std::string::npos);
  CHECK(copy < apart);
  CHECK(apart < freed);
  const auto document = nlohmann::json::parse(json_report(report_of({with_latent_free()})));
  CHECK(document["findings"][0]["would_wait"] == false);
  CHECK(document["findings"][1]["would_wait"] == true);
  CHECK(text_of({training_run("r", 1)}, {}).find("would wait") == std::string::npos);
}

TEST_CASE("of calls whose own cost is not known the table does not say that there was no wait") {
  const std::string sure = "\n would wait on a busier GPU (nothing to wait for this time):\n";
  record_builder builder = with_latent_free();
  CHECK_THAT(text_of({builder}, {}), ContainsSubstring(sure));
  const record_file record = hostwait::test::parsed(builder);
  for (std::uint32_t i = 0; record.has_entry(HOSTWAIT_SECTION_CALLS, i); ++i) {
    auto& call = builder.at<hostwait_record_call>(HOSTWAIT_SECTION_CALLS, i);
    if (call.kind == HOSTWAIT_KIND_FREE) call.kind = HOSTWAIT_KIND_MODULE;
  }
  CHECK_THAT(text_of({builder}, {}),
             ContainsSubstring("this time; of module and context calls that is not known):\n"));
}

TEST_CASE("folded stacks: outermost first, microseconds, without what never waited") {
  const std::string text = folded_report(report_of({with_latent_free()}));
  CHECK(text ==
        "<module> (train.py:90);step (train.py:42);item (_tensor.py:7);libtorch_cuda.so+0x1234;"
        "cudaMemcpyAsync + StreamSynchronize 397000\n");

  record_builder hostile = training_run("r", 1);
  auto& site = hostile.at<hostwait_record_site>(HOSTWAIT_SECTION_SITES, 0);
  site.python = hostile.python(0, "/x.py", "a;b\n9 9\x1b[2J", 0);
  const std::string escaped = folded_report(report_of({hostile}));
  CHECK_THAT(escaped, ContainsSubstring("a_b\\n9 9\\x1b[2J;libtorch"));
  CHECK(folded_report(run_report{}).empty());
}

TEST_CASE("speedscope: frames by number, one weight for each sample") {
  const run_report report = report_of({training_run("r", 4711), training_run("r", 4800)});
  const auto document = nlohmann::json::parse(speedscope_report(report));
  CHECK(document["$schema"] == "https://www.speedscope.app/file-format-schema.json");
  const auto& frames = document["shared"]["frames"];
  REQUIRE(document["profiles"].size() == 2);
  for (const auto& profile : document["profiles"]) {
    CHECK(profile["type"] == "sampled");
    CHECK(profile["unit"] == "nanoseconds");
    REQUIRE(profile["samples"].size() == profile["weights"].size());
    std::uint64_t sum = 0;
    for (const auto& weight : profile["weights"]) sum += weight.get<std::uint64_t>();
    CHECK(profile["startValue"] == 0);
    CHECK(profile["endValue"] == sum);
    for (const auto& sample : profile["samples"]) {
      for (const auto& frame : sample) CHECK(frame.get<std::size_t>() < frames.size());
    }
  }
  const auto& stack = document["profiles"][0]["samples"][0];
  CHECK(frames[stack.front().get<std::size_t>()]["name"] == "<module>");
  CHECK(frames[stack.back().get<std::size_t>()]["name"] == "cudaMemcpyAsync + StreamSynchronize");
  CHECK(frames[stack[1].get<std::size_t>()]["line"] == 42);
  CHECK(document["profiles"][0]["weights"] == nlohmann::json{397000000, 3980000});
}

TEST_CASE("native stacks of a program without Python") {
  finding of;
  of.runtime_call = "cudaFree";
  native_frame frame;
  frame.function = "release";
  frame.file = "/src/app.cpp";
  frame.line = 7;
  frame.owner = frame_owner::user;
  of.native = {frame};
  frame.function = "main";
  frame.line = 20;
  of.native.push_back(frame);
  frame.function = "__libc_start_main";
  frame.owner = frame_owner::system;
  of.native.push_back(frame);
  const std::vector<stack_frame> frames = frames_of(of);
  REQUIRE(frames.size() == 3);
  CHECK(frames[0].name == "main");
  CHECK(stack_line(of) == "cudaFree < release (app.cpp:7) < main (app.cpp:20)");
}

TEST_CASE("every kind and reason has its advice") {
  finding of;
  std::set<std::string> seen;
  for (std::uint32_t kind = 0; kind < HOSTWAIT_KIND_COUNT; ++kind) {
    of.kind = kind;
    of.verdict = HOSTWAIT_VERDICT_STREAM;
    CHECK(advice_for(of).anchor == std::string(kind_name(kind)));
    seen.insert(advice_for(of).anchor);
  }
  of.kind = HOSTWAIT_KIND_ASYNC_COPY;
  for (const auto& [reason, anchor] : {std::pair(HOSTWAIT_REASON_STAGING_LIMIT, "staging_limit"),
                                       std::pair(HOSTWAIT_REASON_QUEUE_DEPTH, "queue_full"),
                                       std::pair(HOSTWAIT_REASON_LAZY_LOAD, "lazy_load"),
                                       std::pair(HOSTWAIT_REASON_UNMEASURED, "async_copy"),
                                       std::pair(HOSTWAIT_REASON_CAPTURE, "capture"),
                                       std::pair(HOSTWAIT_REASON_GRAPH_NODES, "graph_nodes")}) {
    of.reason = reason;
    CHECK(advice_for(of).anchor == std::string(anchor));
    seen.insert(anchor);
  }
  of.reason = HOSTWAIT_REASON_NONE;
  of.verdict = HOSTWAIT_VERDICT_NONE;
  of.sum.held = 1;
  CHECK(advice_for(of).anchor == std::string("held"));
  seen.insert("held");
  for (const advice& each : all_advice()) CHECK(seen.count(each.anchor) == 1);
  of.verdict = HOSTWAIT_VERDICT_STREAM;
  of.kind = 99;  // of a newer shim
  CHECK(advice_for(of).anchor == std::string("unlisted"));
}

TEST_CASE("advice in JSON, cost with the share of the wall time") {
  const auto document = nlohmann::json::parse(json_report(report_of({training_run("r", 4711)})));
  const auto& copy = document["findings"][0];
  CHECK(copy["advice"]["anchor"] == "async_copy");
  CHECK_THAT(copy["advice"]["text"].get<std::string>(), ContainsSubstring("pinned"));
  CHECK(copy["cost"]["waited_ns"] == 397000000);
  CHECK(copy["cost"]["wall_ns"] == 9800000000u);
  CHECK(copy["cost"]["gaps"] == 0);

  text_style style;
  style.detail = true;
  const std::string text = text_of({training_run("r", 4711)}, style);
  CHECK_THAT(text, ContainsSubstring("1. cudaMemcpyAsync + StreamSynchronize  async_copy  "
                                     "train.py:42 step < libtorch_cuda.so+0x1234\n"
                                     "   100 calls, 100 waited; 397 ms waited, 4.1 % of the wall "
                                     "time; longest 4.1 ms\n"));
  CHECK_THAT(text, ContainsSubstring("  python /home/me/train.py:42 step\n"));
  CHECK_THAT(text, ContainsSubstring("(docs/advice.md#free)\n"));

  // Killed: when it ended is not known, so no share is claimed.
  record_builder killed = training_run("r", 4711);
  killed.header.state = HOSTWAIT_RECORD_OPEN;
  killed.header.end_mono_ns = 0;
  CHECK(text_of({killed}, style).find("of the wall time") == std::string::npos);
  CHECK(percent(1, 0).empty());
  CHECK(percent(41, 1000) == "4.1 %");
}

TEST_CASE("gaps belong to the calls before them and are no calls") {
  record_builder builder = training_run("r", 4711);
  hostwait_record_site gap = builder.at<hostwait_record_site>(HOSTWAIT_SECTION_SITES, 2);
  gap.flags = HOSTWAIT_SITE_GAP;
  builder.count(1, builder.site(gap), {.total_ns = 70000000, .max_ns = 50000000});
  auto& histogram = builder.at<hostwait_record_histogram>(HOSTWAIT_SECTION_HISTOGRAMS, 4);
  histogram = {};
  histogram.bucket[24] = 1;
  histogram.bucket[25] = 1;
  const run_report report = report_of({builder});
  REQUIRE(report.findings.size() == 2);
  const tally& freed = report.findings[1].sum;
  CHECK(freed.calls == 8);
  CHECK(freed.total_ns == 4000000);
  CHECK(freed.gaps == 2);
  CHECK(freed.gap_ns == 70000000);
  CHECK(freed.gap_max_ns == 50000000);
  CHECK(report.calls() == 208);
  text_style style;
  style.detail = true;
  CHECK_THAT(text_report(report, style),
             ContainsSubstring("   gap after: 70.0 ms without new work from the thread, 2 times, "
                               "longest 50.0 ms\n"));
  const auto document = nlohmann::json::parse(json_report(report));
  CHECK(document["findings"][1]["cost"]["gaps"] == 2);
}

TEST_CASE("colour only where it is asked for, and never inside the text") {
  text_style style;
  style.colour = true;
  const std::string coloured = text_of({with_latent_free()}, style);
  const std::string plain = text_of({with_latent_free()}, {});
  CHECK(plain.find('\x1b') == std::string::npos);
  std::string stripped;
  for (std::size_t i = 0; i < coloured.size(); ++i) {
    if (coloured[i] == '\x1b') {
      i = coloured.find('m', i);
    } else {
      stripped += coloured[i];
    }
  }
  CHECK(stripped == plain);
  CHECK(coloured.size() > plain.size());
  for (std::size_t at = coloured.find('\n'); at != std::string::npos;
       at = coloured.find('\n', at + 1)) {
    // Every line ends in the terminal's own colours.
    const std::size_t begin = at == 0 ? 0 : coloured.rfind('\n', at - 1) + 1;
    const std::string line = coloured.substr(begin, at - begin);
    if (line.find('\x1b') != std::string::npos) CHECK(line.ends_with("\x1b[0m"));
  }
}

TEST_CASE("a hanging thread is shown with its place") {
  record_builder builder = training_run("r", 4711);
  builder.header.state = HOSTWAIT_RECORD_OPEN;
  auto& thread = builder.at<hostwait_record_thread>(HOSTWAIT_SECTION_THREADS, 1);
  thread.in_call = 3;
  thread.in_site = 3;
  thread.in_call_since_ns = 5;
  const run_report report = report_of({builder});
  REQUIRE(report.processes[0].hanging.size() == 1);
  const hanging_call& hanging = report.processes[0].hanging[0];
  CHECK(hanging.call == "cuMemFree_v2");
  CHECK(where_of(hanging.at) == "train.py:77 main < libtorch_cuda.so+0x9999");
  CHECK_THAT(text_of({builder}, {}),
             ContainsSubstring("thread 4711 python3 was at the end in cuMemFree_v2\n"
                               "  at train.py:77 main < libtorch_cuda.so+0x9999\n"));
  builder.at<hostwait_record_thread>(HOSTWAIT_SECTION_THREADS, 1).in_site = 4000000000u;
  CHECK(report_of({builder}).processes[0].hanging[0].at.call.empty());
}
