// SPDX-License-Identifier: Apache-2.0
// Copyright The hostwait authors
// Finds the record that a process writes.
#include "live.hpp"

#include <fstream>

#include "failure.hpp"
#include "findings/process.hpp"
#include "folders.hpp"

namespace hostwait {

record_file live_record(std::uint32_t pid) {
  std::vector<std::string> candidates;
  std::ifstream maps("/proc/" + std::to_string(pid) + "/maps");
  for (std::string line; std::getline(maps, line);) {
    const std::size_t path = line.find('/');
    if (path != line.npos && line.ends_with(HOSTWAIT_RECORD_SUFFIX))
      candidates.push_back(line.substr(path));
  }
  for (const std::string& folder : live_folders()) {
    for (std::string& path : records_in(folder)) candidates.push_back(std::move(path));
  }
  for (const std::string& path : candidates) {
    read_error error;
    std::optional<record_file> record = record_file::load(path, error);
    if (record && record->header().pid == pid && is_being_written(*record))
      return std::move(*record);
  }
  throw failure(exit_usage, "process " + std::to_string(pid) +
                                " writes no record that you can reach; it must run under hostwait "
                                "and have made a CUDA call");
}

record_file newest_live_record() {
  std::optional<record_file> newest;
  for (const std::string& folder : live_folders()) {
    for (const std::string& path : records_in(folder)) {
      read_error error;
      std::optional<record_file> record = record_file::load(path, error);
      if (!record || !is_being_written(*record)) continue;
      if (!newest || record->header().start_real_ns > newest->header().start_real_ns)
        newest = std::move(record);
    }
  }
  if (!newest)
    throw failure(exit_usage,
                  "no running process writes a record in the live folders; name a process or a "
                  "record: hostwait top PID|FILE");
  return std::move(*newest);
}

}  // namespace hostwait
