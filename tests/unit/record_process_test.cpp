// SPDX-License-Identifier: Apache-2.0
// Copyright The hostwait authors
// One record per process: children of fork and of a raw clone, processes that are killed.
#include <signal.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/time.h>

#include <atomic>
#include <thread>

#include "record_memory.hpp"
#include "record_support.hpp"

using namespace hostwait;
using namespace hostwait::test;

namespace {

constexpr std::uintptr_t stack_of_parent[] = {0x1000, 0x2000};
constexpr std::uintptr_t stack_of_child[] = {0x3000};

void calls(const std::uintptr_t* stack, std::uint32_t depth, unsigned count) {
  for (unsigned i = 0; i < count; ++i) one_call(key_of(stack, depth));
}

pid_t raw_clone() {
  return static_cast<pid_t>(syscall(SYS_clone, SIGCHLD, nullptr, nullptr, nullptr, nullptr));
}

// Parent: 5 calls, a child by `make_child` with 3 calls, 2 more. Two records, nothing mixed.
void two_records(pid_t (*make_child)(), bool kernel_wipes = true) {
  folder out;
  int pipe_ends[2];
  REQUIRE(pipe(pipe_ends) == 0);
  pid_t parent = 0;
  int status = in_child(
      [&] {
        if (!kernel_wipes) {  // as before Linux 4.14
          if (madvise(record::page(), 4096, MADV_KEEPONFORK) != 0) return 7;
          record::page_owner_.store(getpid());
        }
        if (!open_in(out.path)) return 1;
        calls(stack_of_parent, 2, 5);
        pid_t child = make_child();
        if (child == 0) {
          // Before its first call: nothing of its own, and its parent's out of reach.
          if (record::control() != nullptr || record::sum().calls != 0) _exit(3);
          record::leave(record::this_thread());
          record::seal();
          record::count_mismatched_pop();
          calls(stack_of_child, 1, 3);
          _exit(record::sum().calls == 3 ? 0 : 4);
        }
        if (write(pipe_ends[1], &child, sizeof child) != sizeof child) return 5;
        int how = 0;
        waitpid(child, &how, 0);
        if (how != 0) return 6;
        calls(stack_of_parent, 2, 2);
        return 0;
      },
      &parent);
  REQUIRE(WEXITSTATUS(status) == 0);
  pid_t child = 0;
  REQUIRE(read(pipe_ends[0], &child, sizeof child) == sizeof child);
  close(pipe_ends[0]);
  close(pipe_ends[1]);

  REQUIRE(records_in(out.path).size() == 2);
  record_reader of_parent(record_of(out.path, parent)), of_child(record_of(out.path, child));
  CHECK(of_parent.calls() == 7);
  CHECK(of_parent.header.mismatched_pops == 0);
  CHECK(of_parent.header.state == HOSTWAIT_RECORD_OPEN);
  CHECK(of_child.calls() == 3);
  CHECK(of_child.header.ppid == static_cast<std::uint32_t>(parent));
  REQUIRE(of_child.sites().size() == 2);
  CHECK(of_child.stack(of_child.sites()[1].native) == std::vector<std::uint64_t>{0x3000});
  CHECK(of_child.header.start_mono_ns > of_parent.header.start_mono_ns);
}

}  // namespace

TEST_CASE("a forked child has a record of its own", "[native][record]") {
  two_records(fork);
}

TEST_CASE("a child of a raw clone has a record of its own", "[native][record]") {
  two_records(raw_clone);
}

TEST_CASE("the same where the kernel cannot wipe a page at fork", "[record]") {
  two_records(fork, false);
  two_records(raw_clone, false);
}

TEST_CASE("a child that makes no call leaves no file", "[record]") {
  folder out;
  int status = in_child([&] {
    if (!open_in(out.path)) return 1;
    calls(stack_of_parent, 2, 1);
    return WEXITSTATUS(in_child([] { return 0; }));
  });
  REQUIRE(WEXITSTATUS(status) == 0);
  CHECK(records_in(out.path).size() == 1);
}

TEST_CASE("a child forked while another thread is in the slow path is not stuck",
          "[native][record]") {
  folder out;
  int status = in_child([&] {
    if (!open_in(out.path)) return 1;
    std::atomic<bool> stop{false};
    std::thread busy([&] {
      for (std::uintptr_t i = 0; !stop.load(); ++i) {
        std::uintptr_t stack[] = {i, i + 1};
        one_call(key_of(stack, 2));
      }
    });
    int result = 0;
    for (int i = 0; i < 20 && result == 0; ++i) {
      result = WEXITSTATUS(in_child([] {
        calls(stack_of_child, 1, 3);
        record::totals sums = record::sum();
        return sums.calls == 3 && record::ensure_open() ? 0 : 2;
      }));
    }
    stop.store(true);
    busy.join();
    return result;
  });
  REQUIRE(WEXITSTATUS(status) == 0);
  std::size_t whole = 0;
  for (const auto& path : records_in(out.path)) whole += record_reader(path).sites().size() >= 2;
  CHECK(whole == 21);
}

TEST_CASE("the record of a killed process is readable and complete", "[record]") {
  folder out;
  pid_t pid = 0;
  int status = in_child(
      [&] {
        if (!open_in(out.path)) return 1;
        std::uint32_t code = record::intern_python_code("train.py", "step", 40);
        std::uint32_t outer = record::intern_python(0, code, 41);
        std::uint32_t inner = record::intern_python(outer, code, 42);
        for (unsigned i = 0; i < 1000; ++i) one_call(key_of(stack_of_parent, 2, inner, "loss"));
        kill(getpid(), SIGKILL);
        return 2;
      },
      &pid);
  REQUIRE(WIFSIGNALED(status));
  record_reader record(record_of(out.path, pid));
  CHECK(record.header.state == HOSTWAIT_RECORD_OPEN);
  CHECK(record.header.end_mono_ns == 0);
  CHECK(record.calls() == 1000);
  REQUIRE(record.sites().size() == 2);
  const hostwait_record_site site = record.sites()[1];
  CHECK(record.text(site.label) == "loss");
  CHECK(record.stack(site.native) == std::vector<std::uint64_t>{0x1000, 0x2000});
  std::vector<std::uint64_t> python = record.stack(site.python);
  REQUIRE(python.size() == 2);
  CHECK((python[0] & 0xffffffff) == 42);
  CHECK((python[1] & 0xffffffff) == 41);
  auto codes = record.all<hostwait_record_python_code>(HOSTWAIT_SECTION_PYTHON_CODE);
  const hostwait_record_python_code& code = codes.at(python[0] >> 32);
  CHECK(record.text(code.file) == "train.py");
  CHECK(record.text(code.qualname) == "step");
  CHECK(code.first_line == 40);
}

TEST_CASE("a handler that calls while its thread is anywhere in the writer does no harm",
          "[record]") {
  folder out;
  pid_t pid = 0;
  constexpr unsigned rounds = 30000;
  int status = in_child(
      [&] {
        if (!open_in(out.path)) return 1;
        struct sigaction action {};
        action.sa_handler = [](int) {
          static std::uintptr_t next = 0x100000;
          std::uintptr_t stack[] = {next += 16, 0x7000};
          one_call(key_of(stack, 2), 1, record::outcome::held);
        };
        sigaction(SIGALRM, &action, nullptr);
        itimerval every{{0, 200}, {0, 200}};
        setitimer(ITIMER_REAL, &every, nullptr);
        for (unsigned i = 0; i < rounds; ++i) {
          std::uintptr_t stack[] = {0x1000 + i % 5000, 0x2000};
          one_call(key_of(stack, 2));
        }
        itimerval never{};
        setitimer(ITIMER_REAL, &never, nullptr);
        return 0;
      },
      &pid);
  REQUIRE(status == 0);
  record_reader record(record_of(out.path, pid));
  std::uint64_t waited = 0;
  for (const auto& c : record.counters()) waited += c.waited;
  CHECK(waited == rounds);
  CHECK(record.sites().size() >= 5001);
}
