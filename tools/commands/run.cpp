// SPDX-License-Identifier: Apache-2.0
// Copyright The hostwait authors
// hostwait run [options] -- PROGRAM ARGS…: runs it under the shim and reports what waited.
#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <fmt/core.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <memory>

#include "command.hpp"
#include "commands/range.hpp"
#include "failure.hpp"
#include "findings/process.hpp"
#include "folders.hpp"
#include "log.hpp"
#include "options/check.hpp"
#include "options/profile.hpp"
#include "report/escape.hpp"
#include "report/report.hpp"
#include "run/child.hpp"
#include "run/preload.hpp"
#include "symbols/frames.hpp"
#include "verdict.hpp"

namespace hostwait {

namespace {

struct arguments {
  std::vector<std::pair<std::string, std::string>> options;  // key, value: for HOSTWAIT_OPTIONS
  std::string output, format = "text";
  std::size_t limit = 20;
  double after_s = 0, duration_s = 0;
  bool output_given = false, require_cuda = false, quiet = false;
};

std::string flag_of(const char* key) {
  std::string flag = "--" + std::string(key);
  std::replace(flag.begin(), flag.end(), '_', '-');
  return flag;
}

// Asks the file system itself: permissions alone do not know of read-only mounts and quotas.
void require_writable(const std::string& folder) {
  const std::string remedy = "; create it or name another with --output DIR";
  struct stat status {};
  if (::stat(folder.c_str(), &status) != 0 || !S_ISDIR(status.st_mode))
    throw failure(exit_usage, "--output: " + folder + " is no folder" + remedy);
  std::string probe = folder + "/.hostwait-XXXXXX";
  const int descriptor = ::mkostemp(probe.data(), O_CLOEXEC);
  if (descriptor < 0)
    throw failure(exit_usage,
                  "--output: " + folder + " cannot be written: " + std::strerror(errno) + remedy);
  ::close(descriptor);
  ::unlink(probe.c_str());
}

std::string value_of(const char* variable) {
  const char* value = std::getenv(variable);
  return value != nullptr ? value : "";
}

struct setting {
  std::string options;  // HOSTWAIT_OPTIONS of the program
  std::string window;   // "from 30 s to 90 s after the start", "" = all of it
  std::string output;   // where records go
  std::string live;     // folder of live files beside the usual ones, "" = none
  bool link_route = true;
};

setting settle(const arguments& given) {
  setting result;
  result.options = value_of("HOSTWAIT_OPTIONS");
  check_options_text(result.options);
  for (const auto& [key, value] : split_options(result.options)) {
    if (key == "output") result.live = value;
    if (key == "routes") result.link_route = value != "nolink";
    if (key == "profile" && !value.empty()) check_profile("HOSTWAIT_OPTIONS: profile", value);
  }
  for (const auto& [key, value] : given.options) {
    check_option(flag_of(key.c_str()), key, value);
    if (key == "profile" && !value.empty()) check_profile(flag_of(key.c_str()), value);
    if (key == "routes") result.link_route = value != "nolink";
    if (!result.options.empty() && result.options.back() != ':') result.options += ':';
    result.options += option_text(key, value);
  }
  result.output = given.output_given ? given.output : result.live.empty() ? "." : result.live;
  return result;
}

// The same for every process of the run, whenever it starts: times of CLOCK_MONOTONIC. The
// program's own calls look at them; nothing of the tool has to wake up at the right moment.
void add_window(const arguments& given, setting& with) {
  if (given.after_s == 0 && given.duration_s == 0) return;
  timespec now{};
  ::clock_gettime(CLOCK_MONOTONIC, &now);
  const auto ms = [](double seconds) { return static_cast<std::uint64_t>(seconds * 1000 + 0.5); };
  const std::uint64_t begin = static_cast<std::uint64_t>(now.tv_sec) * 1000 +
                              static_cast<std::uint64_t>(now.tv_nsec) / 1000000 + ms(given.after_s);
  const std::uint64_t end = given.duration_s == 0 ? 0 : begin + ms(given.duration_s);
  if (!with.options.empty() && with.options.back() != ':') with.options += ':';
  with.options += option_text("window", fmt::format("{},{}", begin, end));
  with.window = fmt::format("from {} s", given.after_s);
  if (given.duration_s != 0)
    with.window += fmt::format(" to {} s", given.after_s + given.duration_s);
  with.window += " after the start";
}

void print(const std::string& text) {
  // The report belongs on stderr: stdout is the program's. A closed pipe there ends nothing.
  ::signal(SIGPIPE, SIG_IGN);
  std::fwrite(text.data(), 1, text.size(), stderr);
  std::fflush(stderr);
}

// Moves the ended processes' records; one that is still written stays where it is.
std::vector<record_file> fetch(const setting& with, const std::string& run_id) {
  std::vector<std::string> folders = live_folders();
  if (!with.live.empty()) folders.push_back(with.live);
  std::vector<record_file> records;
  for (record_file& record : records_of_run(folders, run_id)) {
    if (is_being_written(record)) {
      log_warning(record.path() + ": process " + std::to_string(record.header().pid) +
                  " still runs; hostwait collect fetches it later");
      records.push_back(std::move(record));
      continue;
    }
    read_error error;
    std::string path = record.path();
    try {
      path = move_into(path, with.output);
    } catch (const failure& problem) {
      log_error(std::string(problem.what()) + "; the record stays at " + path);
    }
    std::optional<record_file> moved = record_file::load(path, error);
    if (moved) {
      records.push_back(std::move(*moved));
    } else {
      log_error(error.line());
    }
  }
  return records;
}

int finish(int wait_status, const arguments& given, const setting& with, const std::string& run_id,
           const std::string& program) {
  const std::vector<record_file> records = fetch(with, run_id);
  if (!with.window.empty() && !given.quiet) log_info("recorded only " + with.window);
  run_report report;
  if (records.empty()) {
    if (!given.quiet) {
      const std::string why = why_unreachable(program);
      log_info("no CUDA driver call seen in " + base_name(program) +
               " or its children: nothing was recorded, which does not mean that nothing waited" +
               (why.empty() ? "" : "; " + why));
    }
  } else {
    report = make_report(records, *make_dwarf_symbolizer());
  }
  if (given.format == "json") {
    print(json_report(report));
  } else if (!records.empty() && !given.quiet) {
    text_style style;
    style.width = terminal_width(STDERR_FILENO);
    style.colour = terminal_colour(STDERR_FILENO);
    style.limit = given.limit;
    style.next_command = true;
    print(text_report(report, style));
  }
  std::string reason;
  const int gate = gate_status(report, given.require_cuda, reason);
  if (gate != exit_fine) log_error(reason);
  // The program's own failure comes first.
  const bool clean = WIFEXITED(wait_status) && WEXITSTATUS(wait_status) == 0;
  return clean ? gate << 8 : wait_status;
}

int run_command(const arguments& given, const program_line& program) {
  if (!program.given || program.words.empty())
    throw failure(exit_usage, "run: no program; write hostwait run [options] -- PROGRAM ARGS…");
  setting with = settle(given);
  require_writable(with.output);
  const std::string path = find_program(program.words.front());
  const shim_libraries libraries = find_shim();
  if (libraries.shim.empty())
    throw failure(exit_usage, "libhostwait.so not found in " + libraries.searched +
                                  "; set HOSTWAIT_LIBDIR to its folder");
  const std::string run_id = random_run_id();
  int wait_status = 0;
  {
    const preload_path shim(libraries.shim);
    std::string mine = shim.text();
    std::unique_ptr<preload_path> link;
    if (with.link_route && !libraries.link.empty()) {
      link = std::make_unique<preload_path>(libraries.link);
      mine += ':' + link->text();
    }
    add_window(given, with);
    environment_changes changes = {{"LD_PRELOAD", combine_preloads(value_of("LD_PRELOAD"), mine)},
                                   {"HOSTWAIT_RUN_ID", run_id}};
    if (!with.options.empty()) changes.emplace_back("HOSTWAIT_OPTIONS", with.options);
    changes.emplace_back("ASAN_OPTIONS", relaxed_asan_options(value_of("ASAN_OPTIONS")));
    // The library is an NVTX injection too; one that the user chose stays.
    const std::string injection = value_of("NVTX_INJECTION64_PATH");
    if (injection.empty()) {
      changes.emplace_back("NVTX_INJECTION64_PATH", shim.text());
    } else if (base_name(injection) != base_name(libraries.shim)) {
      fmt::print(stderr, "hostwait: NVTX_INJECTION64_PATH is {}: findings carry no ranges\n",
                 for_terminal(injection));
    }
    for (const auto& [name, value] : changes) log_verbose(name + '=' + value);
    wait_status = run_child(path, program.words, changes);
  }
  end_as(finish(wait_status, given, with, run_id, path));
}

}  // namespace

std::function<int()> add_run(CLI::App& app, const program_line& program) {
  auto given = std::make_shared<arguments>();
  for (const option_spec& spec : option_specs()) {
    const std::string key = spec.key;
    // The live file's folder is hostwait's affair here, help=1 is --help, and a window is given as
    // --after and --duration.
    if (key == "output" || key == "help" || key == "window") continue;
    const std::string flag = flag_of(spec.key);
    if (std::string(spec.type) == "flag") {
      app.add_flag_function(
          flag,
          [given, key](std::int64_t count) {
            given->options.emplace_back(key, count > 0 ? "1" : "0");
          },
          spec.help);
    } else {
      app.add_option_function<std::vector<std::string>>(
             flag,
             [given, key](const std::vector<std::string>& values) {
               for (const std::string& value : values) given->options.emplace_back(key, value);
             },
             spec.help)
          ->type_size(1)
          ->expected(1)
          ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll)
          ->type_name("VALUE");
    }
  }
  CLI::Option* output =
      app.add_option("--output", given->output, "folder for the records; default: the current one");
  const CLI::AsNumberWithUnit time(
      std::map<std::string, double>{{"ms", 0.001}, {"s", 1.0}, {"m", 60.0}, {"h", 3600.0}},
      CLI::AsNumberWithUnit::UNIT_REQUIRED, "TIME");
  app.add_option("--after", given->after_s,
                 "record and refuse only from then on, as 30s, 500ms, 2m")
      ->transform(time)
      ->check(number_between(0, 1e9));
  app.add_option("--duration", given->duration_s, "and only for so long")
      ->transform(time)
      ->check(number_between(0.001, 1e9));
  app.add_option("--format", given->format, "of the report on stderr: text or json")
      ->check(CLI::IsMember({"text", "json"}));
  app.add_option("--limit", given->limit, "findings shown, 0 for all")
      ->check(number_between(0, 1e9));
  app.add_flag("--require-cuda", given->require_cuda,
               "status 87 when no driver call was seen, or not all could be");
  app.add_flag("-q,--quiet", given->quiet, "no table");
  app.footer("Then -- PROGRAM ARGS…");
  return [given, output, &program] {
    given->output_given = output->count() > 0;
    return run_command(*given, program);
  };
}

}  // namespace hostwait
