// SPDX-License-Identifier: Apache-2.0
// Copyright The hostwait authors
// hostwait doctor: can it work here? One line for each thing that matters, status 1 if one fails.
#include <fmt/core.h>
#include <gnu/libc-version.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <cstdlib>
#include <fstream>

#include "command.hpp"
#include "failure.hpp"
#include "folders.hpp"
#include "hostwait/version.h"
#include "probe.hpp"
#include "report/escape.hpp"
#include "run/preload.hpp"

namespace hostwait {

namespace {

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

void look_at_preload(screen& out) {
  const shim_libraries found = find_shim();
  if (found.shim.empty()) {
    out.wrong("shim", "libhostwait.so not found in " + found.searched +
                          "; set HOSTWAIT_LIBDIR to its folder");
    return;
  }
  out.fine("shim", found.shim);
  if (found.link.empty()) {
    out.note("shim", "libhostwait_link.so is missing: programs linked with -lcuda are not seen");
  }
  const preload_path shim(found.shim);
  const char* existing = std::getenv("LD_PRELOAD");
  const probe_result probe =
      probe_environment(combine_preloads(existing != nullptr ? existing : "", shim.text()));
  if (!probe.ended) {
    out.wrong("preload", "a program under the preload did not end by itself");
  } else if (!probe.preloaded) {
    out.wrong("preload", "the loader did not take " + shim.text() +
                             " into a program (other architecture, noexec mount, no permission?)");
  } else {
    out.fine("preload", "a program started here has the shim in it");
  }
  if (!probe.driver.empty()) {
    out.fine("driver", fmt::format("{}, CUDA {}.{}", probe.driver, probe.driver_version / 1000,
                                   probe.driver_version % 1000 / 10));
  } else {
    out.wrong("driver",
              "libcuda.so.1 cannot be loaded: " +
                  (probe.driver_error.empty() ? "the probe crashed" : probe.driver_error));
  }
  const std::string module = first_line("/proc/driver/nvidia/version");
  if (!module.empty()) out.fine("driver", module);
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
  bool any = false;
  for (const std::string& folder : live_folders()) {
    struct statvfs status {};
    if (::access(folder.c_str(), W_OK) != 0 || ::statvfs(folder.c_str(), &status) != 0) continue;
    const std::uint64_t free = std::uint64_t{status.f_bavail} * status.f_frsize >> 20;
    if (free < 16) {
      out.note("live folder", fmt::format("{} has only {} MiB free", folder, free));
      continue;
    }
    out.fine("live folder", fmt::format("{}, {} MiB free", folder, free));
    any = true;
    break;
  }
  if (!any) out.wrong("live folder", "none of /dev/shm, $XDG_RUNTIME_DIR, /tmp has room");
  std::size_t records = 0;
  for (const std::string& folder : live_folders()) records += records_in(folder).size();
  if (records > 0)
    out.note("records",
             fmt::format("{} left in live folders; hostwait collect fetches them", records));
}

void look_at_process(screen& out) {
  const std::string seccomp = field_of("/proc/self/status", "Seccomp");
  if (seccomp == "2") out.note("seccomp", "a filter is active; the shim needs only common calls");
  const std::string scope = first_line("/proc/sys/kernel/yama/ptrace_scope");
  if (!scope.empty() && scope != "0")
    out.note("ptrace", "ptrace_scope is " + scope +
                           ": hostwait set reaches your own processes' records all the same");
  const bool container = ::access("/.dockerenv", F_OK) == 0 ||
                         ::access("/run/.containerenv", F_OK) == 0 ||
                         std::getenv("KUBERNETES_SERVICE_HOST") != nullptr;
  if (container)
    out.note("container", "records lie in the container's /dev/shm; use run --output to keep them");
}

int doctor_command() {
  screen out;
  out.fine("hostwait", HOSTWAIT_VERSION_STRING);
  out.fine("libc", std::string("glibc ") + ::gnu_get_libc_version());
  look_at_preload(out);
  look_at_environment(out);
  look_at_folders(out);
  look_at_process(out);
  out.note("not seen",
           "static programs, set-user-ID programs, drivers loaded by dlmopen, waits outside the "
           "driver (futures, spinning on host memory), device-side waits");
  std::fflush(stdout);
  return out.works() ? exit_fine : exit_not_working;
}

}  // namespace

std::function<int()> add_doctor(CLI::App&, const program_line&) {
  return [] { return doctor_command(); };
}

}  // namespace hostwait
