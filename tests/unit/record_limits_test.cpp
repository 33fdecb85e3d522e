// SPDX-License-Identifier: Apache-2.0
// Copyright The hostwait authors
// Limits: number of sites, memory, file size, full and missing folders.
#include <fcntl.h>
#include <signal.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include <algorithm>
#include <atomic>
#include <fstream>
#include <thread>
#include <vector>

#include "record_file.hpp"
#include "record_memory.hpp"
#include "record_support.hpp"

using namespace hostwait;
using namespace hostwait::test;

namespace {

// `count` sites whose stacks of 20 frames share their outer 16: ten inner functions call from a
// hundred lines each, and so on.
void different_sites(unsigned count) {
  std::uintptr_t stack[20];
  for (unsigned i = 4; i < 20; ++i) stack[i] = 0x400000 + 16 * i;
  for (unsigned i = 0; i < count; ++i) {
    stack[0] = 0x10000 + 16 * i;
    stack[1] = 0x800000 + i / 2;
    stack[2] = 0x900000 + i / 10;
    stack[3] = 0xa00000 + i / 100;
    one_call(key_of(stack, 20));
  }
}

// stderr of `body` in a child, and its exit status.
std::pair<std::string, int> stderr_of(const std::function<int()>& body, pid_t* pid = nullptr) {
  folder at;
  std::string path = (at.path / "stderr").string();
  int status = in_child(
      [&] {
        int fd = open(path.c_str(), O_CREAT | O_WRONLY, 0600);
        dup2(fd, 2);
        close(fd);
        return body();
      },
      pid);
  std::ifstream file(path);
  return {{std::istreambuf_iterator<char>(file), {}}, WIFEXITED(status) ? WEXITSTATUS(status) : -1};
}

}  // namespace

TEST_CASE("the first open makes a small file, and leaves no descriptor", "[record]") {
  folder out;
  pid_t pid = 0;
  setenv("HOSTWAIT_RUN_ID", "00ff12ab", 1);
  setenv("SLURM_PROCID", "3", 1);
  setenv("SLURM_NTASKS", "8", 1);
  int status = in_child(
      [&] {
        int before = dup(0);
        close(before);
        if (!open_in(out.path)) return 1;
        record::set_driver(13000, "580.159.03");
        record::set_coverage(1u << 0 | 1u << 2, true, "cuFoo x1", 8);
        int after = dup(0);
        return after == before ? 0 : 2;
      },
      &pid);
  unsetenv("HOSTWAIT_RUN_ID");
  unsetenv("SLURM_PROCID");
  unsetenv("SLURM_NTASKS");
  REQUIRE(WEXITSTATUS(status) == 0);
  std::filesystem::path path = record_of(out.path, pid);
  std::string name = path.filename().string();
  CHECK(name.rfind("hostwait-test_record_lim", 0) == 0);
  CHECK(name.find("-" + std::to_string(pid) + "-") != std::string::npos);
  struct stat info;
  REQUIRE(stat(path.c_str(), &info) == 0);
  CHECK((info.st_mode & 07777) == 0600);
  CHECK(info.st_size <= 64 * 1024);
  record_reader record(path);
  const hostwait_record_header& h = record.header;
  CHECK(h.major == 1);
  CHECK(h.header_bytes == HOSTWAIT_RECORD_HEADER_BYTES);
  CHECK(h.file_bytes == static_cast<std::uint64_t>(info.st_size));
  CHECK(std::string(h.run_id) == "00ff12ab");
  CHECK(h.rank == 3);
  CHECK(h.world == 8);
  CHECK(h.ppid == static_cast<std::uint32_t>(getpid()));
  CHECK(h.driver_version == 13000);
  CHECK(std::string(h.driver_text) == "580.159.03");
  CHECK(std::string(h.routes) == "dlsym, cuGetProcAddress");
  CHECK(std::string(h.why_blind) == "cuFoo x1");
  CHECK(h.flags == HOSTWAIT_RECORD_BLIND);
  CHECK(record.text(h.program).rfind("test_record_limits", 0) == 0);
  CHECK(record.text(h.options) == "level=log");
  CHECK(record.text(h.host) != "");
  CHECK(h.start_real_ns != 0);
  CHECK(record.all<hostwait_record_control>(HOSTWAIT_SECTION_CONTROL).size() == 1);
}

TEST_CASE("ten thousand sites of one thread fit the budget", "[record]") {
  folder out;
  pid_t pid = 0;
  int status = in_child(
      [&] {
        if (!open_in(out.path)) return 1;
        different_sites(10000);
        std::size_t all =
            record::private_bytes() + record_reader(record_of(out.path, getpid())).file_bytes();
        return all <= 8u << 20 ? 0 : 2;
      },
      &pid);
  CHECK(WEXITSTATUS(status) == 0);
  record_reader record(record_of(out.path, pid));
  CHECK(record.sites().size() == 10001);
  CHECK(record.file_bytes() <= 4u << 20);
  CHECK((record.header.flags & HOSTWAIT_RECORD_FULL) == 0);
  CHECK(record.calls() == 10000);
}

TEST_CASE("past max_sites calls count at the other site", "[record]") {
  folder out;
  pid_t pid = 0;
  int status = in_child(
      [&] {
        if (!open_in(out.path, 100)) return 1;
        different_sites(150);
        different_sites(150);
        return 0;
      },
      &pid);
  REQUIRE(WEXITSTATUS(status) == 0);
  record_reader record(record_of(out.path, pid));
  CHECK(record.sites().size() == 101);
  CHECK((record.sites()[0].flags & HOSTWAIT_SITE_OTHER) != 0);
  CHECK((record.header.flags & HOSTWAIT_RECORD_FULL) != 0);
  CHECK(record.header.dropped_sites == 100);
  CHECK(record.calls() == 300);
  CHECK(record.calls_by_site()[0] == 100);
  CHECK(record.calls_by_site()[1] == 2);
}

TEST_CASE("the limit on file sizes stops growth, not the program", "[record]") {
  folder out;
  pid_t pid = 0;
  int status = in_child(
      [&] {
        signal(SIGXFSZ, SIG_DFL);
        rlimit limit{128 * 1024, 128 * 1024};
        setrlimit(RLIMIT_FSIZE, &limit);
        if (!open_in(out.path)) return 1;
        different_sites(5000);
        return record::sum().calls == 5000 ? 0 : 2;
      },
      &pid);
  REQUIRE(status == 0);
  record_reader record(record_of(out.path, pid));
  CHECK(record.file_bytes() <= 128 * 1024);
  CHECK((record.header.flags & HOSTWAIT_RECORD_FULL) != 0);
  CHECK(record.calls() == 5000);
}

TEST_CASE("no file at all: anonymous memory and one line", "[record]") {
  auto [said, code] = stderr_of([] {
    rlimit limit{1024, 1024};
    setrlimit(RLIMIT_FSIZE, &limit);
    record::configure({nullptr, 0, nullptr, false});
    if (!record::ensure_open()) return 1;
    different_sites(500);
    return record::sum().calls == 500 ? 0 : 2;
  });
  CHECK(code == 0);
  CHECK(said.find("kept in memory") != std::string::npos);
  CHECK(std::count(said.begin(), said.end(), '\n') == 1);
}

TEST_CASE("an output folder that cannot be used: the live folder and one line", "[record]") {
  folder live;
  auto [said, code] = stderr_of([&] {
    record::configure({"/nonexistent/folder", 0, nullptr, false});
    return record::ensure_open() ? 0 : 1;
  });
  CHECK(code == 0);
  CHECK(said.rfind("hostwait: cannot record in /nonexistent/folder (it does not exist): ", 0) == 0);
  std::size_t at = said.rfind(' ');
  std::string path = said.substr(at + 1, said.size() - at - 2);
  CHECK(std::filesystem::remove(path));

  pid_t pid = 0;
  auto [silent, second] = stderr_of(
      [&] {
        unsetenv("XDG_RUNTIME_DIR");
        record::configure({"/nonexistent/folder", 0, nullptr, false});
        int other = open((live.path / "mine").c_str(), O_CREAT | O_WRONLY, 0600);
        dup2(other, 2);
        if (!record::ensure_open()) return 1;
        return std::filesystem::file_size(live.path / "mine") == 0 ? 0 : 2;
      },
      &pid);
  CHECK(second == 0);
  CHECK(silent.empty());
  // It has said nothing of where its record is: that is found by its number.
  int left = 0;
  for (const char* folder : {"/dev/shm", "/tmp"})
    for (const auto& each : records_in(folder))
      if (const std::string name = each.filename().string();
          name.starts_with("hostwait-test_record_limits-") &&
          name.find("-" + std::to_string(pid) + "-") != std::string::npos)
        left += std::filesystem::remove(each) ? 1 : 0;
  CHECK(left == 1);
}

TEST_CASE("remote and unknown file systems are not mapped", "[record]") {
  for (std::uint64_t local : {0x01021994, 0xef53, 0x58465342, 0x794c7630})
    CHECK(record::is_local_file_system(local));
  // NFS, CIFS, SMB2, FUSE, 9p, Lustre, GPFS, Ceph, proc, nothing known
  for (std::uint64_t other : {0x6969u, 0xff534d42u, 0xfe534d42u, 0x65735546u, 0x01021997u,
                              0x0bd00bd0u, 0x47504653u, 0x00c36400u, 0x9fa0u, 0x12345678u})
    CHECK_FALSE(record::is_local_file_system(other));
  auto [said, code] = stderr_of([] {
    record::configure({"/proc", 0, nullptr, false});
    return record::ensure_open() ? 0 : 1;
  });
  CHECK(code == 0);
  CHECK(said.find("/proc (not a local file system)") != std::string::npos);
  std::size_t at = said.rfind(' ');
  std::filesystem::remove(said.substr(at + 1, said.size() - at - 2));
}

TEST_CASE("a tmpfs that runs full stops growth, not the program", "[record]") {
  folder at;
  if (mount("tmpfs", at.path.c_str(), "tmpfs", 0, "size=96k") != 0) {
    WARN("skipped: this user may not mount a tmpfs");
    return;
  }
  pid_t pid = 0;
  int status = in_child(
      [&] {
        if (!open_in(at.path)) return 1;
        different_sites(5000);
        return record::sum().calls == 5000 ? 0 : 2;
      },
      &pid);
  std::uint64_t calls = 0;
  std::uint32_t flags = 0;
  if (status == 0) {
    record_reader record(record_of(at.path, pid));
    calls = record.calls();
    flags = record.header.flags;
  }
  REQUIRE(umount(at.path.c_str()) == 0);
  CHECK(status == 0);
  CHECK(calls == 5000);
  CHECK((flags & HOSTWAIT_RECORD_FULL) != 0);
}

TEST_CASE("a file that was moved away is not grown by somebody else's name", "[record]") {
  folder out;
  pid_t pid = 0;
  int status = in_child(
      [&] {
        if (!open_in(out.path)) return 1;
        std::filesystem::path path = record_of(out.path, getpid());
        std::filesystem::rename(path, out.path / "kept.hwr");
        std::ofstream(path) << "not a record";
        different_sites(5000);
        if (std::filesystem::file_size(path) != 12) return 2;
        std::filesystem::remove(path);
        return record::sum().calls == 5000 ? 0 : 3;
      },
      &pid);
  REQUIRE(status == 0);
  record_reader record(out.path / "kept.hwr");
  CHECK(record.calls() == 5000);
  CHECK((record.header.flags & HOSTWAIT_RECORD_FULL) != 0);
}

TEST_CASE("a link at the record's name is not followed", "[record]") {
  folder out;
  std::ofstream(out.path / "victim") << "precious";
  pid_t pid = 0;
  int status = in_child(
      [&] {
        if (!open_in(out.path)) return 1;
        std::filesystem::path path = record_of(out.path, getpid());
        std::filesystem::rename(path, out.path / "kept.hwr");
        std::filesystem::create_symlink(out.path / "victim", path);
        different_sites(5000);
        std::filesystem::remove(path);
        return record::sum().calls == 5000 ? 0 : 3;
      },
      &pid);
  REQUIRE(status == 0);
  CHECK(std::filesystem::file_size(out.path / "victim") == 8);
  CHECK(record_reader(out.path / "kept.hwr").calls() == 5000);
}

TEST_CASE("a million stacks need no more than max_sites of them", "[record]") {
#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
  constexpr unsigned stacks = 100000;
#else
  constexpr unsigned stacks = 1000000;
#endif
  constexpr unsigned limit = 20000;  // the option's default
  folder out;
  pid_t pid = 0;
  int status = in_child(
      [&] {
        if (!open_in(out.path, limit)) return 1;
        different_sites(stacks);
        std::size_t all =
            record::private_bytes() + record_reader(record_of(out.path, getpid())).file_bytes();
        // 4 MiB of file and 8 in all are the budget of 10^4 sites.
        if (all > 2 * (8u << 20)) return 2;
        return record::sum().calls == stacks ? 0 : 3;
      },
      &pid);
  CHECK(WEXITSTATUS(status) == 0);
  record_reader record(record_of(out.path, pid));
  CHECK(record.sites().size() == limit + 1);
  CHECK(record.file_bytes() <= 2 * (4u << 20));
  CHECK(record.calls() == stacks);
  CHECK(record.calls_by_site()[0] == stacks - limit);
  CHECK((record.header.flags & HOSTWAIT_RECORD_FULL) != 0);
}

TEST_CASE("a further thread on known sites costs 192 bytes a pair", "[record]") {
  folder out;
  constexpr unsigned sites = 5000, threads = 8;
  int status = in_child([&] {
    if (!open_in(out.path)) return 1;
    different_sites(sites);
    const auto bytes = [&] { return record_reader(record_of(out.path, getpid())).used_bytes(); };
    const std::uint64_t before = bytes();
    std::vector<std::thread> all;
    for (unsigned i = 0; i < threads; ++i) {
      // One after the other, all alive at the end: no slot is used twice.
      std::atomic<bool> done{false};
      all.emplace_back([&] {
        different_sites(sites);
        done = true;
        sleep(1000);
      });
      while (!done.load()) sched_yield();
    }
    const std::uint64_t after = bytes();
    // Besides the pairs, a slot and the pair of "other" for each thread.
    const std::uint64_t allowed = threads * (sites * 192ull + 192 + 128);
    _exit(after - before <= allowed && record::sum().calls == (threads + 1) * sites ? 0 : 2);
  });
  CHECK(WEXITSTATUS(status) == 0);
}
