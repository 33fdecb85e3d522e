// SPDX-License-Identifier: Apache-2.0
// Copyright The hostwait authors
// hostwait doctor: can it work here? One line for each thing that matters, status 1 if one fails.
#include <fmt/core.h>
#include <gnu/libc-version.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <memory>
#include <set>
#include <sstream>

#include "command.hpp"
#include "failure.hpp"
#include "folders.hpp"
#include "hostwait/version.h"
#include "options/check.hpp"
#include "options/profile.hpp"
#include "report/escape.hpp"
#include "run/child.hpp"
#include "run/preload.hpp"
#include "selftest/selftest.hpp"
#include "symbols/frames.hpp"

namespace hostwait {

namespace {

namespace fs = std::filesystem;

class screen {
 public:
  void fine(const char* topic, const std::string& text) { line("ok", topic, text); }
  void note(const char* topic, const std::string& text) { line("note", topic, text); }
  void wrong(const char* topic, const std::string& text) {
    line("FAIL", topic, text);
    works_ = false;
  }
  bool works() const { return works_; }

 private:
  static void line(const char* mark, const char* topic, const std::string& text) {
    std::printf("%-5s%-12s%s\n", mark, topic, for_terminal(text).c_str());
  }
  bool works_ = true;
};

std::string first_line(const char* path) {
  std::ifstream file(path);
  std::string line;
  std::getline(file, line);
  return line;
}

std::string field_of(const char* path, const std::string& name) {
  std::ifstream file(path);
  for (std::string line; std::getline(file, line);) {
    if (line.starts_with(name + ":")) {
      const std::size_t at = line.find_first_not_of(" \t", name.size() + 1);
      return at == line.npos ? "" : line.substr(at);
    }
  }
  return "";
}

// Where the loader, containers and the toolkit put copies of the driver.
std::vector<std::string> driver_copies(const std::string& loaded) {
  std::vector<std::string> folders = {"/usr/lib/x86_64-linux-gnu",
                                      "/usr/lib/aarch64-linux-gnu",
                                      "/usr/lib64",
                                      "/usr/lib",
                                      "/usr/lib/wsl/lib",
                                      "/usr/local/cuda/compat",
                                      "/usr/local/nvidia/lib64"};
  if (const char* path = std::getenv("LD_LIBRARY_PATH")) {
    std::istringstream list(path);
    for (std::string folder; std::getline(list, folder, ':');) folders.push_back(folder);
  }
  std::set<std::string> files;
  std::error_code ignored;
  folders.push_back(fs::path(loaded).parent_path().string());
  for (const std::string& folder : folders) {
    const fs::path file = fs::canonical(fs::path(folder) / "libcuda.so.1", ignored);
    if (!ignored) files.insert(file.string());
  }
  return {files.begin(), files.end()};
}

// "580.159" of "libcuda.so.580.159".
std::string version_in_name(const std::string& file) {
  const std::string base = base_name(file);
  const std::string version = base.substr(std::min(base.size(), std::strlen("libcuda.so.")));
  return version.find('.') == version.npos ? "" : version;
}

void look_at_driver(screen& out, const selftest_result& probe) {
  if (probe.driver.empty()) {
    out.wrong("driver",
              "libcuda.so.1 cannot be loaded: " +
                  (probe.driver_error.empty() ? "the probe crashed" : probe.driver_error));
    return;
  }
  out.fine("driver", fmt::format("{}, CUDA {}.{}", probe.driver, probe.driver_version / 1000,
                                 probe.driver_version % 1000 / 10));
  const std::string module = first_line("/proc/driver/nvidia/version");
  if (!module.empty()) out.fine("driver", module);
  const std::vector<std::string> copies = driver_copies(probe.driver);
  if (copies.size() < 2) return;
  std::string text = fmt::format("{} of libcuda:", copies.size());
  for (const std::string& each : copies) {
    const std::string version = version_in_name(each);
    text += ' ' + each + (version.empty() ? "" : " (" + version + ")");
  }
  out.note("copies", text);
}

// One call on each route, each in a program of its own.
void look_at_routes(screen& out, const selftest_setting& with, bool has_link) {
  std::string caught;
  for (const char* route : selftest_routes) {
    const route_result result = selftest_route(with, route);
    if (result.state == route_state::caught) {
      caught += (caught.empty() ? "" : ", ") + std::string(route);
    } else if (result.state == route_state::not_here) {
      out.note("route", fmt::format("{}: not tried: {}", route, result.why));
    } else {
      const bool link = std::string(route) == "linked" && !has_link;
      out.wrong("route", fmt::format("{}: {}{}", route, result.why,
                                     link ? "; libhostwait_link.so is missing" : ""));
    }
  }
  if (!caught.empty()) out.fine("routes", caught + ": a call was caught on each");
}

// The children of the self-test have left records like any program.
void remove_records(const std::string& run_id) {
  for (const record_file& record : records_of_run(live_folders(), run_id))
    ::unlink(record.path().c_str());
}

void look_at_preload(screen& out) {
  const shim_libraries found = find_shim();
  if (found.shim.empty()) {
    out.wrong("shim", "libhostwait.so not found in " + found.searched +
                          "; set HOSTWAIT_LIBDIR to its folder");
    return;
  }
  out.fine("shim", found.shim);
  const preload_path shim(found.shim);
  std::unique_ptr<preload_path> link;
  std::string mine = shim.text();
  if (!found.link.empty()) {
    link = std::make_unique<preload_path>(found.link);
    mine += ':' + link->text();
  }
  const char* existing = std::getenv("LD_PRELOAD");
  const selftest_setting with = {combine_preloads(existing != nullptr ? existing : "", mine),
                                 found.selftest, random_run_id()};
  const selftest_result probe = selftest_environment(with);
  if (!probe.ended) {
    out.wrong("preload", "a program under the preload did not end by itself");
  } else if (!probe.preloaded) {
    out.wrong("preload", "the loader did not take " + shim.text() +
                             " into a program (other architecture, noexec mount, no permission?)");
  } else {
    out.fine("preload", "a program started here has the shim in it");
  }
  look_at_driver(out, probe);
  if (probe.ended && probe.preloaded && !probe.driver.empty())
    look_at_routes(out, with, !found.link.empty());
  remove_records(with.run_id);
}

void look_at_options(screen& out) {
  const char* text = std::getenv("HOSTWAIT_OPTIONS");
  if (text == nullptr || *text == '\0') return;
  try {
    check_options_text(text);
    out.note("options", fmt::format("HOSTWAIT_OPTIONS={}", text));
    for (const auto& [key, value] : split_options(text)) {
      if (key == "profile" && !value.empty()) check_profile("HOSTWAIT_OPTIONS: profile", value);
      if (key == "routes" && value == "nolink")
        out.note("options", "routes=nolink: programs linked with -lcuda are not seen");
      if (key == "deepbind" && value == "keep")
        out.note("options", "deepbind=keep: libraries opened with RTLD_DEEPBIND are not seen");
    }
  } catch (const failure& wrong) {
    out.wrong("options", wrong.what());
  }
}

void look_at_environment(screen& out) {
  for (const char* name : {"LD_PRELOAD", "LD_AUDIT"}) {
    if (const char* value = std::getenv(name); value != nullptr && *value != '\0')
      out.note("preload", fmt::format("{}={}: others interpose, too", name, value));
  }
  for (const char* name : {"CUDA_INJECTION64_PATH", "NVTX_INJECTION64_PATH",
                           "CUDA_ENABLE_COREDUMP_ON_EXCEPTION", "CUDA_LAUNCH_BLOCKING"}) {
    if (const char* value = std::getenv(name); value != nullptr && *value != '\0')
      out.note("injection", fmt::format("{}={} is set", name, value));
  }
  if (std::getenv("CUDA_LAUNCH_BLOCKING") != nullptr)
    out.note("injection", "with CUDA_LAUNCH_BLOCKING=1 every launch waits");
}

void look_at_folders(screen& out) {
  constexpr std::uint64_t least = 16;  // MiB: what a record may need
  bool any = false;
  for (const std::string& folder : live_folders()) {
    struct statvfs status {};
    if (::access(folder.c_str(), W_OK) != 0 || ::statvfs(folder.c_str(), &status) != 0) continue;
    const std::uint64_t free = std::uint64_t{status.f_bavail} * status.f_frsize >> 20;
    const std::uint64_t size = std::uint64_t{status.f_blocks} * status.f_frsize >> 20;
    const std::string text = fmt::format("{}, {} of {} MiB free", folder, free, size);
    if (free < least) {
      out.note("live folder", text + ": too little for a record");
      continue;
    }
    out.fine("live folder", text);
    any = true;
    break;
  }
  if (!any)
    out.wrong("live folder",
              "none of /dev/shm, $XDG_RUNTIME_DIR, /tmp can be written and has room");
  std::size_t records = 0;
  std::uint64_t bytes = 0;
  for (const std::string& folder : live_folders()) {
    for (const std::string& path : records_in(folder)) {
      struct stat status {};
      if (::stat(path.c_str(), &status) != 0) continue;
      ++records;
      bytes += static_cast<std::uint64_t>(status.st_blocks) * 512;
    }
  }
  if (records > 0)
    out.note("records", fmt::format("{} in live folders, {:.1f} MiB; hostwait collect fetches them",
                                    records, static_cast<double>(bytes) / (1 << 20)));
}

void look_at_process(screen& out) {
  const std::string seccomp = field_of("/proc/self/status", "Seccomp");
  if (seccomp == "2") out.note("seccomp", "a filter is active; the shim needs only common calls");
  const std::string scope = first_line("/proc/sys/kernel/yama/ptrace_scope");
  if (!scope.empty() && scope != "0")
    out.note("ptrace", "ptrace_scope is " + scope +
                           ": top and set read records, not processes, and work all the same");
  const char* marker = ::access("/.dockerenv", F_OK) == 0              ? "/.dockerenv"
                       : ::access("/run/.containerenv", F_OK) == 0     ? "/run/.containerenv"
                       : ::access("/run/systemd/container", F_OK) == 0 ? "/run/systemd/container"
                       : std::getenv("KUBERNETES_SERVICE_HOST") != nullptr
                           ? "KUBERNETES_SERVICE_HOST"
                           : nullptr;
  if (marker != nullptr)
    out.note("container", fmt::format("{}: records lie in the container's /dev/shm; run --output "
                                      "keeps them",
                                      marker));
}

int doctor_command() {
  screen out;
  out.fine("hostwait", HOSTWAIT_VERSION_STRING);
  out.fine("libc", std::string("glibc ") + ::gnu_get_libc_version());
  look_at_preload(out);
  look_at_options(out);
  look_at_environment(out);
  look_at_folders(out);
  look_at_process(out);
  out.note("setuid",
           "programs with set-user-ID, set-group-ID or file capabilities ignore LD_PRELOAD");
  out.note(
      "not seen",
      "static programs, other C libraries, drivers loaded by dlmopen, waits outside the driver "
      "(futures, spinning on host memory), waits on the device");
  std::fflush(stdout);
  return out.works() ? exit_fine : exit_not_working;
}

}  // namespace

std::function<int()> add_doctor(CLI::App&, const program_line&) {
  return [] { return doctor_command(); };
}

}  // namespace hostwait
