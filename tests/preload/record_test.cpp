// SPDX-License-Identifier: Apache-2.0
// Copyright The hostwait authors
// The record that a program under the preload leaves: stacks, children, death by a signal.
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <filesystem>
#include <functional>
#include <thread>
#include <vector>

#include "support/catch.hpp"
#include "support/driver.hpp"
#include "support/record_reader.hpp"

using namespace hostwait::test;

namespace {

const char* folder() {
  return HOSTWAIT_TEST_FOLDER;
}

pid_t start_child(const std::function<void()>& body) {
  pid_t pid = fork();
  if (pid == 0) {
    body();
    _exit(0);
  }
  return pid;
}

int end_of(pid_t pid) {
  int status = 0;
  waitpid(pid, &status, 0);
  return status;
}

// Made once before any fork is counted: the simulated driver is used in children only.
void begin() {
  CUcontext context = nullptr;
  if (DRIVER(cuInit)(0) != CUDA_SUCCESS ||
      DRIVER(cuDevicePrimaryCtxRetain)(&context, 0) != CUDA_SUCCESS ||
      DRIVER(cuCtxSetCurrent)(context) != CUDA_SUCCESS)
    _exit(3);
}

std::uintptr_t* returns_to;  // shared with the children

__attribute__((noinline)) int inner() {
  int result = DRIVER(cuCtxSynchronize)();
  returns_to[0] = reinterpret_cast<std::uintptr_t>(__builtin_return_address(0));
  return result + 1;
}
__attribute__((noinline)) int outer() {
  int result = inner();
  returns_to[1] = reinterpret_cast<std::uintptr_t>(__builtin_return_address(0));
  return result + 1;
}

struct shared_words {
  shared_words() {
    returns_to = static_cast<std::uintptr_t*>(
        mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0));
  }
  ~shared_words() { munmap(returns_to, 4096); }
};

std::uint64_t calls_of(const record_reader& record, const std::string& symbol) {
  auto calls = record.all<hostwait_record_call>(HOSTWAIT_SECTION_CALLS);
  auto sites = record.sites();
  std::uint64_t sum = 0;
  for (auto [site, count] : record.calls_by_site())
    if (record.text(calls.at(sites.at(site).call).name) == symbol) sum += count;
  return sum;
}

}  // namespace

TEST_CASE("a killed program leaves its stacks and counts", "[preload][record]") {
  shared_words words;
  pid_t pid = start_child([] {
    begin();
    for (int i = 0; i < 25; ++i) outer();
    raise(SIGKILL);
  });
  REQUIRE(WIFSIGNALED(end_of(pid)));
  std::filesystem::path path = record_of(folder(), pid);
  record_reader record(path);
  CHECK(record.header.state == HOSTWAIT_RECORD_OPEN);
  CHECK(calls_of(record, "cuCtxSynchronize") == 25);

  auto calls = record.all<hostwait_record_call>(HOSTWAIT_SECTION_CALLS);
  bool found = false;
  for (const hostwait_record_site& site : record.sites()) {
    if (record.text(calls.at(site.call).name) != "cuCtxSynchronize") continue;
    std::vector<std::uint64_t> stack = record.stack(site.native);
    REQUIRE(stack.size() > 5);  // inner, outer, the lambda, …, main, _start
    CHECK(stack[1] == returns_to[0]);
    CHECK(stack[2] == returns_to[1]);
    std::uint32_t module = record.frames().at(site.native).module;
    CHECK(record.text(record.modules().at(module).path) ==
          std::filesystem::read_symlink("/proc/self/exe").string());
    found = true;
  }
  CHECK(found);
  std::filesystem::remove(path);
}

TEST_CASE("a forked child counts in a record of its own", "[native][preload][record]") {
  shared_words words;
  pid_t pid = start_child([] {
    begin();
    for (int i = 0; i < 3; ++i) outer();
    pid_t second = start_child([] {
      for (int i = 0; i < 2; ++i) outer();
    });
    returns_to[8] = static_cast<std::uintptr_t>(second);
    if (end_of(second) != 0) _exit(4);
    outer();
  });
  REQUIRE(end_of(pid) == 0);
  auto second = static_cast<pid_t>(returns_to[8]);
  std::filesystem::path first_path = record_of(folder(), pid);
  std::filesystem::path second_path = record_of(folder(), second);
  CHECK(calls_of(record_reader(first_path), "cuCtxSynchronize") == 4);
  CHECK(calls_of(record_reader(second_path), "cuCtxSynchronize") == 2);
  std::filesystem::remove(first_path);
  std::filesystem::remove(second_path);
}

TEST_CASE("threads that come and go are counted", "[preload][record]") {
  shared_words words;
  pid_t pid = start_child([] {
    begin();
    for (int round = 0; round < 50; ++round) {
      std::vector<std::thread> threads;
      for (int t = 0; t < 4; ++t) {
        threads.emplace_back([] { DRIVER(cuCtxSynchronize)(); });
      }
      for (auto& thread : threads) thread.join();
    }
  });
  REQUIRE(end_of(pid) == 0);
  std::filesystem::path path = record_of(folder(), pid);
  record_reader record(path);
  // A first sight that met the lock is counted at "other", and as such.
  INFO("unseen " << record.header.unseen_locks << ", dropped " << record.header.dropped_sites
                 << ", all calls " << record.calls() << ", flags " << record.header.flags);
  CHECK(calls_of(record, "cuCtxSynchronize") + record.header.unseen_locks == 200);
  CHECK(record.threads().size() < 40);
  std::filesystem::remove(path);
}
