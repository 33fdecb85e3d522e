// SPDX-License-Identifier: Apache-2.0
// Copyright The hostwait authors
// hostwait report [FILE|DIR…]: the findings on stdout, as text, JSON or stacks.
#include "report/report.hpp"

#include <unistd.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <cstdlib>
#include <memory>

#include "command.hpp"
#include "commands/range.hpp"
#include "failure.hpp"
#include "folders.hpp"
#include "report/groups.hpp"
#include "report/stacks.hpp"
#include "stdout.hpp"

namespace hostwait {

namespace {

struct arguments {
  std::vector<std::string> names;
  std::string format = "text";
  grouping by = grouping::finding;
  std::size_t limit = 20;
  bool limit_given = false, detail = false, debuginfod = false;
};

// Options that would have no effect are refused: silence would be taken for obedience.
void check(const arguments& given) {
  const bool stacks = given.format == "folded" || given.format == "speedscope";
  if (stacks && (given.by != grouping::finding || given.limit_given))
    throw failure(exit_usage, "report: --format " + given.format +
                                  " has every finding that waited, each with its stack; leave out "
                                  "--by and --limit");
  if (given.detail && (given.format != "text" || given.by != grouping::finding))
    throw failure(exit_usage,
                  "report: --detail is for the text of findings; leave out --by, and "
                  "--format but text (json has the details)");
}

int report_command(const arguments& given) {
  check(given);
  const std::size_t limit = given.limit_given || given.format == "text" ? given.limit : 0;
  if (const char* urls = std::getenv("DEBUGINFOD_URLS");
      given.debuginfod && (urls == nullptr || *urls == '\0'))
    throw failure(exit_usage,
                  "--debuginfod: DEBUGINFOD_URLS is not set; give it the servers' URLs");
  std::unique_ptr<symbolizer> symbols = make_dwarf_symbolizer(given.debuginfod);
  std::vector<record_file> records = given.names.empty() ? newest_run() : load_named(given.names);
  std::string text;
  if (given.format == "text") {
    text_style style;
    style.width = terminal_width(STDOUT_FILENO);
    style.colour = terminal_colour(STDOUT_FILENO);
    style.limit = limit;
    style.detail = given.detail;
    style.by = given.by;
    for (const std::vector<record_file>& run : group_by_run(std::move(records))) {
      if (!text.empty()) text += '\n';
      text += text_report(make_report(run, *symbols), style);
    }
  } else {
    const run_report report = make_report(records, *symbols);
    text = given.format == "json"     ? json_report(report, limit, given.by)
           : given.format == "folded" ? folded_report(report)
                                      : speedscope_report(report);
  }
  print_stdout(text, "the report");
  return exit_fine;
}

}  // namespace

std::function<int()> add_report(CLI::App& app, const program_line&) {
  auto given = std::make_shared<arguments>();
  app.add_option("records", given->names, "records or folders; default: the newest run");
  app.add_option("--format", given->format,
                 "text, json, folded (stacks for flame graphs, weights in us) or speedscope")
      ->check(CLI::IsMember({"text", "json", "folded", "speedscope"}));
  app.add_option("--by", given->by,
                 "add findings up: line, function, call, range, thread or process")
      ->transform(CLI::CheckedTransformer(groupings()));
  app.add_flag("--detail", given->detail, "a paragraph for each finding: cost, stack, advice");
  CLI::Option* limit = app.add_option("--limit", given->limit,
                                      "findings or groups shown, 0 for all (text: 20, json: all)")
                           ->check(number_between(0, 1e9));
  app.add_flag("--debuginfod", given->debuginfod,
               "ask the servers in DEBUGINFOD_URLS for debug files, for up to 60 s");
  return [given, limit] {
    given->limit_given = limit->count() > 0;
    return report_command(*given);
  };
}

}  // namespace hostwait
