// SPDX-License-Identifier: Apache-2.0
// Copyright The hostwait authors
// Parses the command line by the table of commands and runs the one that was named.
#include "command.hpp"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <map>

#include "failure.hpp"
#include "hostwait/version.h"
#include "log.hpp"
#include "selftest/selftest.hpp"

namespace hostwait {

namespace {

constexpr command table[] = {
    {"run", "run a program and report the waits in it", add_run},
    {"report", "print the findings of records", add_report},
    {"top", "a running program's waits, live, also of one that hangs", add_top},
    {"check", "exit status only: 86 violations, 87 unseen, 2 unreadable", add_check},
    {"doctor", "can it work on this machine?", add_doctor},
    {"probe", "measure which calls stop the host on this GPU", add_probe},
    {"suppress", "print a rule that allows one finding (rules are not read yet)", add_suppress},
    {"diff", "findings of two runs: new, gone, grown", add_diff},
    {"collect", "move finished records from the live folders", add_collect},
    {"set", "change the level of a running program, pause or resume it", add_set},
};

int execute(const std::vector<std::string>& arguments) {
  CLI::App app("Finds every driver call in which a program's threads wait for the GPU.",
               "hostwait");
  app.set_version_flag("--version", "hostwait " HOSTWAIT_VERSION_STRING);
  app.require_subcommand(1);
  bool verbose = false;
  app.add_flag("-v,--verbose", verbose, "say what the tool does");

  program_line program;
  std::vector<std::string> own = arguments;
  if (const auto dashes = std::find(own.begin(), own.end(), "--"); dashes != own.end()) {
    program.given = true;
    program.words.assign(dashes + 1, own.end());
    own.erase(dashes, own.end());
  }
  std::map<const CLI::App*, std::function<int()>> actions;
  // Only the command that is named is built: `run` starts programs and has two milliseconds.
  const auto named = std::find_if(std::begin(table), std::end(table), [&](const command& each) {
    return std::find(own.begin(), own.end(), each.name) != own.end();
  });
  const auto word = std::find_if(own.begin(), own.end(), [](const std::string& each) {
    return each.empty() || each.front() != '-';
  });
  if (named == std::end(table) && word != own.end())
    throw failure(exit_usage, "'" + *word + "' is no command; see hostwait --help");
  const bool all =
      named == std::end(table) || std::find(own.begin(), own.end(), named->name) - own.begin() > 1;
  for (const command& each : table) {
    if (!all && &each != named) continue;
    CLI::App* sub = app.add_subcommand(each.name, each.help);
    sub->fallthrough();
    actions[sub] = each.add(*sub, program);
  }
  std::reverse(own.begin(), own.end());  // CLI11 takes its words from the back
  try {
    app.parse(own);
  } catch (const CLI::Success& done) {  // --help, --version
    app.exit(done);
    return exit_fine;
  } catch (const CLI::ParseError& wrong) {
    throw failure(exit_usage, std::string(wrong.what()) + "; see hostwait --help");
  }
  set_verbose(verbose);
  const CLI::App* chosen = app.get_subcommands().front();
  if (program.given && chosen->get_name() != "run")
    throw failure(exit_usage, "only run takes a program after --; see hostwait --help");
  return actions.at(chosen)();
}

}  // namespace

std::span<const command> commands() {
  return table;
}

int run_command_line(const std::vector<std::string>& arguments) {
  if (!arguments.empty() && arguments.front() == selftest_command) return run_selftest(arguments);
  try {
    return execute(arguments);
  } catch (const failure& known) {
    log_error(known.what());
    return known.status();
  } catch (const std::exception& unknown) {
    log_error(std::string("internal error: ") + unknown.what());
    return exit_usage;
  }
}

}  // namespace hostwait
