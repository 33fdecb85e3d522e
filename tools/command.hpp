// SPDX-License-Identifier: Apache-2.0
// Copyright The hostwait authors
// The table of commands. The name typed is the name of the file in commands/.
#pragma once

#include <functional>
#include <span>
#include <string>
#include <vector>

namespace CLI {
class App;
}

namespace hostwait {

// What stands behind "--": CLI11 never sees it, because a program's own "--" must reach it.
struct program_line {
  bool given = false;
  std::vector<std::string> words;
};

struct command {
  const char* name;
  const char* help;
  // Adds the command's options; the result runs it and returns the exit status.
  std::function<int()> (*add)(CLI::App& app, const program_line& program);
};

std::span<const command> commands();

std::function<int()> add_check(CLI::App& app, const program_line& program);
std::function<int()> add_collect(CLI::App& app, const program_line& program);
std::function<int()> add_diff(CLI::App& app, const program_line& program);
std::function<int()> add_doctor(CLI::App& app, const program_line& program);
std::function<int()> add_probe(CLI::App& app, const program_line& program);
std::function<int()> add_report(CLI::App& app, const program_line& program);
std::function<int()> add_run(CLI::App& app, const program_line& program);
std::function<int()> add_set(CLI::App& app, const program_line& program);
std::function<int()> add_suppress(CLI::App& app, const program_line& program);
std::function<int()> add_top(CLI::App& app, const program_line& program);

// argv without its first word; returns the exit status.
int run_command_line(const std::vector<std::string>& arguments);

}  // namespace hostwait
