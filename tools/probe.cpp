// SPDX-License-Identifier: Apache-2.0
// Copyright The hostwait authors
// Loads the driver in a child under the preload and tells what came of it.
#include "probe.hpp"

#include <dlfcn.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <sstream>

namespace hostwait {

namespace {

std::int64_t now_ms() {
  timespec now{};
  ::clock_gettime(CLOCK_MONOTONIC, &now);
  return std::int64_t{now.tv_sec} * 1000 + now.tv_nsec / 1000000;
}

// Reads until the end or the deadline; false at the deadline.
bool read_all(int from, std::string& text) {
  const std::int64_t deadline = now_ms() + 10000;
  for (;;) {
    pollfd waiting{from, POLLIN, 0};
    const std::int64_t left = deadline - now_ms();
    if (left <= 0 || ::poll(&waiting, 1, static_cast<int>(left)) == 0) return false;
    char buffer[1024];
    const ssize_t got = ::read(from, buffer, sizeof buffer);
    if (got <= 0) return got == 0;
    text.append(buffer, static_cast<std::size_t>(got));
  }
}

}  // namespace

int run_probe() {
  std::printf("preloaded=%d\n", ::dlsym(RTLD_DEFAULT, "hostwait_api") != nullptr);
  std::fflush(stdout);
  void* driver = ::dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
  if (driver == nullptr) {
    std::printf("driver_error=%s\n", ::dlerror());
    return 0;
  }
  int version = 0;
  void* symbol = ::dlsym(driver, "cuDriverGetVersion");
  Dl_info info{};
  if (symbol != nullptr && ::dladdr(symbol, &info) != 0 && info.dli_fname != nullptr)
    std::printf("driver=%s\n", info.dli_fname);
  if (symbol != nullptr && reinterpret_cast<int (*)(int*)>(symbol)(&version) == 0)
    std::printf("driver_version=%d\n", version);
  std::fflush(stdout);
  // The driver's destructors are not ours to test.
  ::_exit(0);
}

probe_result probe_environment(const std::string& preload) {
  probe_result result;
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) return result;
  const pid_t child = ::fork();
  if (child == 0) {
    ::dup2(ends[1], STDOUT_FILENO);
    ::setenv("LD_PRELOAD", preload.c_str(), 1);
    ::execl("/proc/self/exe", "hostwait", probe_command, static_cast<char*>(nullptr));
    ::_exit(127);
  }
  ::close(ends[1]);
  std::string text;
  const bool complete = child > 0 && read_all(ends[0], text);
  ::close(ends[0]);
  if (child > 0) {
    if (!complete) ::kill(child, SIGKILL);
    int status = 0;
    ::waitpid(child, &status, 0);
    result.ended = complete && WIFEXITED(status) && WEXITSTATUS(status) == 0;
  }
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    const std::size_t equals = line.find('=');
    if (equals == line.npos) continue;
    const std::string key = line.substr(0, equals), value = line.substr(equals + 1);
    if (key == "preloaded") result.preloaded = value == "1";
    if (key == "driver") result.driver = value;
    if (key == "driver_error") result.driver_error = value;
    if (key == "driver_version") result.driver_version = std::atoi(value.c_str());
  }
  return result;
}

}  // namespace hostwait
