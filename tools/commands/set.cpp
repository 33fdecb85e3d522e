// SPDX-License-Identifier: Apache-2.0
// Copyright The hostwait authors
// hostwait set PID level=…|pause|resume: writes the control entry of a running process's record.
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <memory>

#include "command.hpp"
#include "failure.hpp"
#include "live.hpp"
#include "log.hpp"
#include "options/check.hpp"

namespace hostwait {

namespace {

struct arguments {
  std::uint32_t pid = 0;
  std::vector<std::string> changes;
};

struct change {
  std::uint64_t actions = 0, mask = 0;
  int paused = -1;
};

change parse_changes(const std::vector<std::string>& words) {
  change result;
  for (const std::string& word : words) {
    if (word == "pause" || word == "resume") {
      result.paused = word == "pause" ? 1 : 0;
    } else if (word.starts_with("level=")) {
      std::string remedy;
      const std::optional<level_value> level = parse_level(word.substr(6), remedy);
      if (!level) throw failure(exit_usage, "set: '" + word + "': " + remedy);
      for (std::uint32_t kind = 0; kind < HOSTWAIT_KIND_COUNT; ++kind) {
        if ((level->kinds >> kind & 1) == 0) continue;
        const std::uint64_t field = std::uint64_t{0xf} << (4 * kind);
        result.mask |= field;
        result.actions = (result.actions & ~field) | std::uint64_t{level->action + 1} << (4 * kind);
      }
    } else {
      throw failure(
          exit_usage,
          "set: '" + word + "' is not understood: use level=ACTION[@KIND,…], pause, resume");
    }
  }
  return result;
}

int set_command(const arguments& given) {
  const change wanted = parse_changes(given.changes);
  const record_file record = live_record(given.pid);
  const std::uint64_t offset = record.control_offset();
  if (offset == 0)
    throw failure(exit_usage, record.path() +
                                  ": has no control entry; the program runs under an "
                                  "older hostwait");
  const int descriptor = ::open(record.path().c_str(), O_RDWR | O_CLOEXEC | O_NOFOLLOW);
  if (descriptor < 0)
    throw failure(exit_usage, record.path() + ": cannot be written: " + std::strerror(errno));
  const auto page = static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE));
  const std::uint64_t begin = offset / page * page;
  const std::size_t bytes = offset - begin + sizeof(hostwait_record_control);
  void* mapped = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, descriptor,
                        static_cast<off_t>(begin));
  ::close(descriptor);
  if (mapped == MAP_FAILED)
    throw failure(exit_usage, record.path() + ": cannot be mapped: " + std::strerror(errno));
  auto* control =
      reinterpret_cast<hostwait_record_control*>(static_cast<char*>(mapped) + (offset - begin));
  std::atomic_ref<std::uint64_t> actions(control->actions);
  if (wanted.mask != 0) actions.store((actions.load() & ~wanted.mask) | wanted.actions);
  if (wanted.paused >= 0)
    std::atomic_ref<std::uint32_t>(control->paused)
        .store(static_cast<std::uint32_t>(wanted.paused));
  // Last: the program's threads look at the other words when this one has moved.
  std::atomic_ref<std::uint32_t>(control->generation).fetch_add(1, std::memory_order_release);
  ::munmap(mapped, bytes);
  log_verbose(record.path() + ": changed");
  return exit_fine;
}

}  // namespace

std::function<int()> add_set(CLI::App& app, const program_line&) {
  auto given = std::make_shared<arguments>();
  app.add_option("pid", given->pid, "process that runs under hostwait")->required();
  app.add_option("change", given->changes, "level=ACTION[@KIND,…], pause, resume")->required();
  return [given] { return set_command(*given); };
}

}  // namespace hostwait
