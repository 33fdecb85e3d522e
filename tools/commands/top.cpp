// SPDX-License-Identifier: Apache-2.0
// Copyright The hostwait authors
// hostwait top [PID|FILE]: the waits of a running process, redrawn from its record; or the last
// state of one that was killed.
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <memory>

#include "command.hpp"
#include "commands/range.hpp"
#include "failure.hpp"
#include "live.hpp"
#include "monotonic.hpp"
#include "stdout.hpp"
#include "top/screen.hpp"
#include "top/terminal.hpp"

namespace hostwait {

namespace {

struct arguments {
  std::string what;
  top_order sort = top_order::waited;
  double interval = 1;
  bool once = false;
};

record_file record_of(const std::string& what) {
  if (what.empty()) return newest_live_record();
  if (what.size() < 10 && what.find_first_not_of("0123456789") == what.npos)
    return live_record(static_cast<std::uint32_t>(std::stoul(what)));
  read_error error;
  std::optional<record_file> record = record_file::load(what, error);
  if (!record) throw failure(exit_usage, error.line());
  return std::move(*record);
}

void watch(record_file record, symbolizer& symbols, screen_style style, double interval) {
  const std::string path = record.path();
  screen_state state;
  style.keys = true;
  terminal screen;
  run_report report = make_report({record}, symbols);
  for (std::uint64_t next = mono_ns();;) {
    style.width = terminal_width(STDOUT_FILENO);
    style.height = terminal::rows(STDOUT_FILENO);
    const std::uint64_t now = mono_ns();
    if (!style.paused && now >= next) {
      read_error error;
      // Moved by `run` at the end of its program, or removed: the last state stays on the screen.
      if (std::optional<record_file> later = record_file::load(path, error)) {
        style.fresh = state.mono_ns != 0;
        report = make_report({*later}, symbols);
        style.news.clear();
      } else {
        style.fresh = false;
        style.news = "the record is gone: this is its last state (" + error.line() + ")";
        if (!report.processes.empty()) {
          report.processes[0].alive = false;
          report.processes[0].sealed = true;
          report.processes[0].hanging.clear();
        }
      }
      next = now + static_cast<std::uint64_t>(interval * 1e9);
      if (!screen.show(draw_screen(report, style, state, now))) return;
    } else {
      // Another order or size of the same figures.
      screen_state same = state;
      screen_style still = style;
      still.fresh = false;
      if (!screen.show(draw_screen(report, still, same, now))) return;
    }
    const std::uint64_t until = std::max(next, mono_ns()) - mono_ns();
    const char key = screen.wait_for_key(style.paused ? -1 : static_cast<int>(until / 1000000 + 1));
    if (key == 'q') return;
    if (key != 0 && !style.paused) next = 0;  // look again at once
    if (key == 'p') style.paused = !style.paused;
    for (const auto& [name, order] : top_orders()) {
      if (key == name[0]) style.order = order;
    }
  }
}

int top_command(const arguments& given) {
  std::unique_ptr<symbolizer> symbols = make_dwarf_symbolizer();
  record_file record = record_of(given.what);
  screen_style style;
  style.order = given.sort;
  style.colour = terminal_colour(STDOUT_FILENO);
  if (given.once || ::isatty(STDOUT_FILENO) == 0) {
    style.width = terminal_width(STDOUT_FILENO);
    screen_state state;
    print_stdout(draw_screen(make_report({record}, *symbols), style, state, mono_ns()),
                 "the table");
    return exit_fine;
  }
  watch(std::move(record), *symbols, style, given.interval);
  return exit_fine;
}

}  // namespace

std::function<int()> add_top(CLI::App& app, const program_line&) {
  auto given = std::make_shared<arguments>();
  app.add_option("process", given->what,
                 "a process id, or a record; default: the process that started last");
  app.add_option("--sort", given->sort, "waited, total, calls, max, latent or now")
      ->transform(CLI::CheckedTransformer(top_orders()));
  app.add_option("--interval", given->interval, "seconds between two looks")
      ->check(number_between(0.1, 3600));
  app.add_flag("--once", given->once, "print one frame and end; so it is where stdout is a pipe");
  return [given] { return top_command(*given); };
}

}  // namespace hostwait
