// SPDX-License-Identifier: Apache-2.0
// Copyright The hostwait authors
// hostwait check RECORD…: the exit status for a CI job, and one line that gives the reason.
#include <CLI/CLI.hpp>
#include <memory>

#include "command.hpp"
#include "failure.hpp"
#include "folders.hpp"
#include "log.hpp"
#include "verdict.hpp"

namespace hostwait {

namespace {

struct arguments {
  std::vector<std::string> names;
  bool require_cuda = false, quiet = false;
};

int check_command(const arguments& given) {
  const std::vector<record_file> records = load_named(given.names);
  // Violations are counts: no name is needed, so no file of the program is opened.
  std::unique_ptr<symbolizer> symbols = make_plain_symbolizer();
  std::string reason;
  const int status = gate_status(make_report(records, *symbols), given.require_cuda, reason);
  if (status != exit_fine && !given.quiet) log_error(reason);
  return status;
}

}  // namespace

std::function<int()> add_check(CLI::App& app, const program_line&) {
  auto given = std::make_shared<arguments>();
  app.add_option("records", given->names, "records or folders")->required();
  app.add_flag("--require-cuda", given->require_cuda,
               "87 when no driver call was seen, or not all could be");
  app.add_flag("-q,--quiet", given->quiet, "print nothing");
  return [given] { return check_command(*given); };
}

}  // namespace hostwait
