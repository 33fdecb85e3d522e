// SPDX-License-Identifier: Apache-2.0
// Copyright The hostwait authors
// hostwait suppress FINGERPRINT|N [RECORD…]: a rule for one finding, in the form of hostwait.toml,
// which this version does not read yet.
#include <fmt/core.h>

#include <toml++/toml.h>
#include <CLI/CLI.hpp>
#include <filesystem>
#include <memory>
#include <sstream>

#include "command.hpp"
#include "failure.hpp"
#include "folders.hpp"
#include "report/escape.hpp"
#include "report/report.hpp"
#include "stdout.hpp"

namespace hostwait {

namespace {

struct arguments {
  std::string which, reason = "say here why this wait is wanted";
  std::vector<std::string> names;
};

constexpr std::size_t fingerprint_digits = 16;

const finding& chosen(const run_report& report, const std::string& which) {
  if (which.size() == fingerprint_digits) {
    for (const finding& each : report.findings)
      if (each.fingerprint == which) return each;
    throw failure(exit_usage, "suppress: no finding " + which +
                                  " in these records; hostwait report --detail names them");
  }
  std::size_t number = 0;
  if (which.empty() || which.size() > 6 || which.find_first_not_of("0123456789") != which.npos ||
      (number = std::stoul(which)) == 0 || number > report.findings.size())
    throw failure(
        exit_usage,
        fmt::format("suppress: '{}' is no finding: give a fingerprint of 16 hex digits, or "
                    "its row in hostwait report, 1 to {}",
                    which, report.findings.size()));
  return *rows_of(report, 0)[number - 1];
}

// "train/log.py": enough to tell files apart, without the folders of this machine.
std::string short_path(const std::string& path) {
  const std::filesystem::path file(path);
  const std::string parent = file.parent_path().filename().string();
  return parent.empty() || parent == "/" ? file.filename().string()
                                         : parent + '/' + file.filename().string();
}

toml::table rule_for(const finding& of, const std::string& reason) {
  toml::array kinds{kind_name(of.kind)};
  // A copy and the wait behind it are one finding; both calls must be allowed.
  if (of.joined_wait) kinds.push_back(kind_name(HOSTWAIT_KIND_STREAM_SYNC));
  toml::table rule{{"reason", reason}, {"kind", kinds}};
  if (const python_frame* python = user_python_frame(of)) {
    rule.insert("python", short_path(python->file) + ':' + python->function);
  } else if (const native_frame* native =
                 user_frame(of) != nullptr ? user_frame(of) : library_frame(of)) {
    rule.insert("module", base_name(native->module));
    if (!native->function.empty()) rule.insert("function", native->function);
  }
  if (!of.label.empty()) rule.insert("label", of.label);
  if (!of.range.empty()) rule.insert("range", of.range);
  return rule;
}

int suppress_command(const arguments& given) {
  const std::vector<record_file> records =
      given.names.empty() ? newest_run() : load_named(given.names);
  const run_report report = make_report(records, *make_dwarf_symbolizer());
  const finding& of = chosen(report, given.which);
  const toml::table rule = rule_for(of, given.reason);
  if (!rule.contains("python") && !rule.contains("module") && !rule.contains("label") &&
      !rule.contains("range"))
    throw failure(exit_usage, "suppress: finding " + of.fingerprint +
                                  " has no stack, label or range: a rule would allow every " +
                                  kind_name(of.kind) + "; give the region a label instead");
  std::ostringstream text;
  text << "# " << for_terminal(of.runtime_call) << ", " << where_of(of) << "; finding "
       << of.fingerprint << '\n'
       << toml::toml_formatter{toml::table{{"allow", toml::array{rule}}},
                               toml::toml_formatter::default_flags &
                                   ~toml::format_flags::allow_literal_strings}
       << '\n';
  print_stdout(text.str(), "the rule");
  return exit_fine;
}

}  // namespace

std::function<int()> add_suppress(CLI::App& app, const program_line&) {
  auto given = std::make_shared<arguments>();
  app.add_option("finding", given->which, "its fingerprint, or its row in the report")->required();
  app.add_option("records", given->names, "records or folders; default: the newest run");
  app.add_option("--reason", given->reason, "why the wait is wanted");
  return [given] { return suppress_command(*given); };
}

}  // namespace hostwait
