// SPDX-License-Identifier: Apache-2.0
// Copyright The hostwait authors
// Reads a record's header and thread slots for the head of a report.
#include "process.hpp"

#include <fmt/core.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <sstream>

#include "monotonic.hpp"

namespace hostwait {

namespace {

std::vector<std::string> split(const std::string& text, char separator) {
  std::vector<std::string> parts;
  std::istringstream in(text);
  for (std::string part; std::getline(in, part, separator);) {
    const std::size_t first = part.find_first_not_of(' ');
    if (first != std::string::npos) parts.push_back(part.substr(first));
  }
  return parts;
}

// In a container's record the numbers are the container's: then nothing is known, and it stays.
bool has_thread(std::uint32_t pid, std::uint32_t tid) {
  return ::access(fmt::format("/proc/{}/task/{}", pid, pid).c_str(), F_OK) != 0 ||
         ::access(fmt::format("/proc/{}/task/{}", pid, tid).c_str(), F_OK) == 0;
}

}  // namespace

bool is_being_written(const record_file& record) {
  if (record.sealed() || record.header().pid == 0) return false;
  struct stat status {};
  if (::stat(record.path().c_str(), &status) != 0) return false;
  std::ifstream maps(fmt::format("/proc/{}/maps", record.header().pid));
  for (std::string line; std::getline(maps, line);) {
    // address perms offset device inode path; the path may be seen from another root.
    std::istringstream fields(line);
    std::string range, permissions, offset, device;
    std::uint64_t inode = 0;
    if (fields >> range >> permissions >> offset >> device >> inode &&
        inode == static_cast<std::uint64_t>(status.st_ino) && line.find(".hwr") != line.npos)
      return true;
  }
  return false;
}

process_info describe_process(const record_file& record, run_report& report) {
  const hostwait_record_header& header = record.header();
  process_info info;
  info.record = record.path();
  info.program = record.program();
  info.host = record.string(header.host);
  info.run_id = record.run_id();
  info.pid = header.pid;
  info.ppid = header.ppid;
  info.rank = header.rank;
  info.world = header.world;
  info.sealed = record.sealed();
  info.alive = is_being_written(record);
  info.blind = record.has(HOSTWAIT_RECORD_BLIND);
  info.full = record.has(HOSTWAIT_RECORD_FULL);
  info.config_error = record.has(HOSTWAIT_RECORD_CONFIG_ERROR);
  info.start_real_ns = header.start_real_ns;
  info.dropped_sites = header.dropped_sites;
  info.mismatched_pops = header.mismatched_pops;
  info.unseen_locks = header.unseen_locks;
  const std::uint64_t end = info.alive ? mono_ns() : header.end_mono_ns;
  if (end > header.start_mono_ns) info.run_ns = end - header.start_mono_ns;

  record.for_each(HOSTWAIT_SECTION_THREADS, [&](std::uint32_t i) {
    const hostwait_record_thread thread = record.thread(i);
    info.calls += thread.allowed;
    if (thread.in_call == 0 || thread.in_call_since_ns == 0 || info.sealed) return;
    // A thread that was cancelled in a call ended without leaving it.
    if (info.alive && !has_thread(info.pid, thread.tid)) return;
    hanging_call hanging;
    hanging.tid = thread.tid;
    hanging.thread_name = fixed_text(thread.name);
    hanging.call = record.string(record.call(thread.in_call - 1).name);
    hanging.site = thread.in_site;
    if (info.alive && end > thread.in_call_since_ns) hanging.ns = end - thread.in_call_since_ns;
    info.hanging.push_back(std::move(hanging));
  });
  record.for_each(HOSTWAIT_SECTION_COUNTERS, [&](std::uint32_t i) {
    const hostwait_record_counters counters = record.counters(i);
    if (counters.site != HOSTWAIT_COUNTERS_FREE) info.calls += counters.calls;
  });

  if (report.driver.empty()) {
    report.driver = record.driver_text();
    if (report.driver.empty() && header.driver_version != 0)
      report.driver = fmt::format("for CUDA {}.{}", header.driver_version / 1000,
                                  header.driver_version % 1000 / 10);
  }
  for (std::string& route : split(record.routes(), ',')) {
    if (std::find(report.routes.begin(), report.routes.end(), route) == report.routes.end())
      report.routes.push_back(std::move(route));
  }
  if (const std::string_view note = record.string(header.python_note); !note.empty())
    report.notes.insert(std::string(note));
  for (std::string& why : split(record.why_blind(), '\n')) report.why_blind.insert(std::move(why));
  return info;
}

}  // namespace hostwait
