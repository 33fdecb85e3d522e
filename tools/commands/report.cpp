// SPDX-License-Identifier: Apache-2.0
// Copyright The hostwait authors
// hostwait report [FILE|DIR…]: the findings, as text or JSON, on stdout.
#include "report/report.hpp"

#include <unistd.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <memory>

#include "command.hpp"
#include "failure.hpp"
#include "folders.hpp"

namespace hostwait {

namespace {

struct arguments {
  std::vector<std::string> names;
  std::string format = "text";
  std::size_t limit = 20;
  bool limit_given = false;
};

// The newest run in the live folders and, since `run` moves records there, the current one.
std::vector<record_file> newest_run() {
  std::vector<std::string> folders = live_folders();
  folders.emplace_back(".");
  std::vector<record_file> all;
  std::string first_error;
  for (const std::string& folder : folders) {
    for (const std::string& path : records_in(folder)) {
      read_error error;
      std::optional<record_file> record = record_file::load(path, error);
      if (record) {
        all.push_back(std::move(*record));
      } else if (first_error.empty()) {
        first_error = error.line();
      }
    }
  }
  if (all.empty())
    throw failure(exit_usage, first_error.empty()
                                  ? "no record in the live folders or here; make one with "
                                    "hostwait run -- PROGRAM, or name it"
                                  : first_error);
  std::vector<std::vector<record_file>> runs = group_by_run(std::move(all));
  return std::move(runs.back());
}

int report_command(const arguments& given) {
  const std::size_t limit = given.limit_given || given.format == "text" ? given.limit : 0;
  std::unique_ptr<symbolizer> symbols = make_dwarf_symbolizer();
  std::vector<record_file> records = given.names.empty() ? newest_run() : load_named(given.names);
  std::string text;
  if (given.format == "json") {
    text = json_report(make_report(records, *symbols), limit);
  } else {
    text_style style;
    style.width = terminal_width(STDOUT_FILENO);
    style.limit = limit;
    for (const std::vector<record_file>& run : group_by_run(std::move(records))) {
      if (!text.empty()) text += '\n';
      text += text_report(make_report(run, *symbols), style);
    }
  }
  if (std::fwrite(text.data(), 1, text.size(), stdout) != text.size() || std::fflush(stdout) != 0)
    throw failure(exit_usage, "the report cannot be written to stdout");
  return exit_fine;
}

}  // namespace

std::function<int()> add_report(CLI::App& app, const program_line&) {
  auto given = std::make_shared<arguments>();
  app.add_option("records", given->names, "records or folders; default: the newest run");
  app.add_option("--format", given->format, "text or json")->check(CLI::IsMember({"text", "json"}));
  CLI::Option* limit =
      app.add_option("--limit", given->limit, "findings shown, 0 for all (text: 20, json: all)");
  return [given, limit] {
    given->limit_given = limit->count() > 0;
    return report_command(*given);
  };
}

}  // namespace hostwait
