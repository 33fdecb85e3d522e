// SPDX-License-Identifier: Apache-2.0
// Copyright The hostwait authors
// hostwait probe: which driver calls stop the host, measured on this machine's GPU, and whether
// the verdicts of the shim agree.
#include "probe/runner.hpp"

#include <sys/ioctl.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <fstream>
#include <memory>
#include <sstream>

#include "command.hpp"
#include "failure.hpp"
#include "probe/output.hpp"
#include "probe/profile_writer.hpp"
#include "probe/worker.hpp"

namespace hostwait {

namespace {

struct arguments {
  bool quick = false, check = false, list = false, memory_owner = false;
  std::string format = "text", output, save, only;
  std::vector<std::string> stored;
  int device = 0, worker = -1;
  unsigned kernel_ms = 0;
};

void write_file(const std::string& path, const std::string& text) {
  std::ofstream file(path, std::ios::binary);
  file << text;
  file.close();
  if (!file) throw failure(exit_usage, path + ": cannot be written");
}

void show_progress(unsigned done, unsigned of, const std::string& id) {
  constexpr unsigned width = 24;
  std::string bar(width, '.');
  std::fill_n(bar.begin(), of ? width * done / of : 0, '#');
  std::fprintf(stderr, "\r[%s] %u/%u %-48.48s", bar.c_str(), done, of, id.c_str());
  std::fflush(stderr);
}

int list_experiments(const probe::run_options& options) {
  for (const probe::experiment* e : probe::chosen(options))
    std::printf("%s\t%s%s\n", e->id.c_str(), e->call.c_str(), e->fresh ? " (own process)" : "");
  return exit_fine;
}

std::string rendered(const probe::report& all, const std::string& format) {
  if (format == "json") return probe::to_json(all);
  if (format == "csv") return probe::to_csv(all);
  return probe::to_text(all);
}

int judged(const probe::report& all, std::FILE* to = stdout) {
  std::fputs(probe::to_ending(all).c_str(), to);
  return probe::summarize(all).wrong > 0 ? exit_not_working : exit_fine;
}

// Today's rules against results of earlier runs.
int check_stored(const std::vector<std::string>& files) {
  probe::report all;
  for (const std::string& path : files) {
    std::ifstream file(path, std::ios::binary);
    std::stringstream text;
    text << file.rdbuf();
    probe::report one;
    std::string why;
    if (!file || !probe::from_json(text.str(), one, why))
      throw failure(exit_usage, path + ": " + (why.empty() ? "cannot be read" : why));
    for (probe::result& r : one.rows) {
      probe::judge_again(r);
      all.rows.push_back(r);
    }
  }
  const int status = judged(all);
  const probe::summary s = probe::summarize(all);
  return s.experiments == 0 || s.depend * 20 > s.experiments ? exit_not_working : status;
}

int probe_command_line(const arguments& given) {
  if (given.worker >= 0) probe::run_worker(given.worker, given.device);
  if (given.memory_owner) return probe::own_memory(given.device);
  if (!given.stored.empty()) return check_stored(given.stored);
  probe::run_options options;
  options.quick = given.quick;
  options.only = given.only;
  options.device = given.device;
  options.kernel_ms = given.kernel_ms;
  if (given.list) return list_experiments(options);
  const bool terminal = ::isatty(STDERR_FILENO) == 1;
  if (terminal) options.progress = show_progress;
  const probe::report all = probe::run_experiments(options);
  if (terminal) std::fputs("\r\x1b[K", stderr);
  const std::string text = rendered(all, given.format);
  if (!given.output.empty())
    write_file(given.output, text);
  else
    std::fputs(text.c_str(), stdout);
  if (!given.save.empty()) write_file(given.save, probe::to_profile(all));
  // JSON and CSV on standard output stay whole.
  const bool mixed = given.output.empty() && given.format != "text";
  if (given.check) return judged(all, mixed ? stderr : stdout);
  if (given.output.empty() && given.format == "text")
    std::fputs(probe::to_ending(all).c_str(), stdout);
  return exit_fine;
}

}  // namespace

std::function<int()> add_probe(CLI::App& app, const program_line&) {
  auto given = std::make_shared<arguments>();
  app.add_flag("--quick", given->quick, "the most telling experiments only, under twenty seconds");
  app.add_flag("--check", given->check, "status 1 where a verdict does not agree");
  app.add_option("--format", given->format, "text, json or csv")
      ->check(CLI::IsMember({"text", "json", "csv"}));
  app.add_option("--output", given->output, "write the results to this file");
  app.add_option("--save", given->save, "write a verdict profile, for profile=FILE");
  app.add_option("--only", given->only, "experiments with this in their name");
  app.add_option("--device", given->device, "number of the GPU")->check(CLI::NonNegativeNumber);
  app.add_option("--kernel-ms", given->kernel_ms, "how long the kernel runs")
      ->check(CLI::Range(1, 1000));
  app.add_flag("--list", given->list, "list the experiments and end");
  app.add_option("--stored", given->stored, "judge stored JSON results by today's rules");
  app.add_option("--worker", given->worker, "")->group("");
  app.add_flag("--memory-owner", given->memory_owner, "")->group("");
  return [given] { return probe_command_line(*given); };
}

}  // namespace hostwait
