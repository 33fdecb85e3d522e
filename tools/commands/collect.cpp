// SPDX-License-Identifier: Apache-2.0
// Copyright The hostwait authors
// hostwait collect [DIR] [--from FOLDER]: moves the records of ended processes out of the live
// folders.
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <memory>

#include "command.hpp"
#include "failure.hpp"
#include "findings/process.hpp"
#include "folders.hpp"
#include "log.hpp"

namespace hostwait {

namespace {

struct arguments {
  std::string folder = ".";
  std::vector<std::string> from;
};

int collect_command(const arguments& given) {
  const std::string& folder = given.folder;
  if (::access(folder.c_str(), W_OK | X_OK) != 0)
    throw failure(exit_usage, folder +
                                  ": is no folder that can be written; create it or name "
                                  "another: hostwait collect DIR");
  std::size_t moved = 0, running = 0;
  for (const std::string& live : given.from.empty() ? live_folders() : given.from) {
    for (const std::string& path : records_in(live)) {
      read_error error;
      const std::optional<record_file> record = record_file::load(path, error);
      if (!record) {
        log_warning(error.line());
        continue;
      }
      if (is_being_written(*record)) {
        log_info(path + ": process " + std::to_string(record->header().pid) +
                 " still writes it: left there");
        ++running;
        continue;
      }
      std::puts(move_into(path, folder).c_str());
      ++moved;
    }
  }
  if (moved == 0 && running == 0) log_info("no record to collect");
  return exit_fine;
}

}  // namespace

std::function<int()> add_collect(CLI::App& app, const program_line&) {
  auto given = std::make_shared<arguments>();
  app.add_option("folder", given->folder, "where to; default: the current folder");
  app.add_option("--from", given->from, "folders to take from; default: the live folders")
      ->expected(1)
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
  return [given] { return collect_command(*given); };
}

}  // namespace hostwait
