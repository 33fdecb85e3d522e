// SPDX-License-Identifier: Apache-2.0
// Copyright The hostwait authors
// Loads the driver in a child under the preload, makes a call there, and tells what came of it.
#include "selftest/selftest.hpp"

#include <dlfcn.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <sstream>

#include "hostwait/hostwait.h"

namespace hostwait {

namespace {

constexpr const char* driver_name = "libcuda.so.1";
// Needs no device, no context and no cuInit (it fails without them), and is a wait by its name.
constexpr const char* call_name = "cuCtxSynchronize";
using call_type = int (*)();

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

std::uint64_t recorded_calls() {
  hostwait_stats stats{};
  stats.size = sizeof stats;
  return hostwait_stats_get(&stats) == 0 ? stats.calls : 0;
}

template <class Function>
Function function_at(void* address) {
  return reinterpret_cast<Function>(address);
}

// Stands in for a route that this driver or installation does not have.
struct absent {
  std::string why;
};

void* by_proc_address(void* driver, bool second_form, bool itself) {
  const char* name = second_form ? "cuGetProcAddress_v2" : "cuGetProcAddress";
  void* ask = ::dlsym(driver, name);
  if (ask == nullptr) throw absent{std::string("the driver has no ") + name};
  constexpr int version = 12000;
  void* found = nullptr;
  if (!second_form) {
    using form = int (*)(const char*, void**, int, std::uint64_t);
    function_at<form>(ask)(call_name, &found, version, 0);
    return found;
  }
  using form = int (*)(const char*, void**, int, std::uint64_t, int*);
  int status = 0;
  if (itself) function_at<form>(ask)("cuGetProcAddress", &ask, version, 0, &status);
  function_at<form>(ask)(call_name, &found, version, 0, &status);
  return found;
}

void call_helper(void* driver, const std::string& helper, bool deepbind) {
  if (helper.empty()) throw absent{"libhostwait_selftest.so is not installed"};
  void* library = ::dlopen(helper.c_str(), RTLD_NOW | RTLD_LOCAL | (deepbind ? RTLD_DEEPBIND : 0));
  if (library == nullptr) throw absent{::dlerror()};
  void* function =
      ::dlsym(library, deepbind ? "hostwait_selftest_by_dlsym" : "hostwait_selftest_linked");
  if (function == nullptr) throw absent{helper + " is of another version"};
  function_at<int (*)(void*)>(function)(driver);
}

void call_on(const std::string& route, const std::string& helper, void* driver) {
  void* found = nullptr;
  if (route == "dlsym") {
    found = ::dlsym(driver, call_name);
  } else if (route == "dlvsym") {
    found = ::dlvsym(driver, call_name, driver_name);
    if (found == nullptr) throw absent{"this driver's functions have no version"};
  } else if (route == "linked" || route == "deepbind") {
    return call_helper(driver, helper, route == "deepbind");
  } else {
    found = by_proc_address(driver, route != "cuGetProcAddress", route == "runtime");
  }
  if (found == nullptr) throw absent{std::string("the driver has no ") + call_name};
  function_at<call_type>(found)();
}

int describe_driver(void* driver) {
  int version = 0;
  void* symbol = ::dlsym(driver, "cuDriverGetVersion");
  Dl_info info{};
  if (symbol != nullptr && ::dladdr(symbol, &info) != 0 && info.dli_fname != nullptr)
    std::printf("driver=%s\n", info.dli_fname);
  if (symbol != nullptr && function_at<int (*)(int*)>(symbol)(&version) == 0)
    std::printf("driver_version=%d\n", version);
  return 0;
}

using answers = std::map<std::string, std::string>;

// Runs this program again with the words; true when it ended by itself, with status 0.
bool ask(const selftest_setting& with, const std::vector<std::string>& words, answers& out) {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) return false;
  std::vector<char*> line;
  for (const std::string& word : words) line.push_back(const_cast<char*>(word.c_str()));
  line.push_back(nullptr);
  const pid_t child = ::fork();
  if (child == 0) {
    ::dup2(ends[1], STDOUT_FILENO);
    ::setenv("LD_PRELOAD", with.preload.c_str(), 1);
    ::setenv("HOSTWAIT_RUN_ID", with.run_id.c_str(), 1);
    ::unsetenv("HOSTWAIT_OPTIONS");  // its defaults are what is tested
    ::execv("/proc/self/exe", line.data());
    ::_exit(127);
  }
  ::close(ends[1]);
  std::string text;
  const bool complete = child > 0 && read_all(ends[0], text);
  ::close(ends[0]);
  int status = -1;
  if (child > 0) {
    if (!complete) ::kill(child, SIGKILL);
    ::waitpid(child, &status, 0);
  }
  std::istringstream lines(text);
  for (std::string each; std::getline(lines, each);) {
    const std::size_t equals = each.find('=');
    if (equals != each.npos) out[each.substr(0, equals)] = each.substr(equals + 1);
  }
  return complete && WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

}  // namespace

int run_selftest(const std::vector<std::string>& arguments) {
  std::printf("preloaded=%d\n", ::dlsym(RTLD_DEFAULT, "hostwait_api") != nullptr);
  std::fflush(stdout);
  void* driver = ::dlopen(driver_name, RTLD_NOW | RTLD_LOCAL);
  if (driver == nullptr) {
    std::printf("driver_error=%s\n", ::dlerror());
    return 0;
  }
  if (arguments.size() < 2) {
    describe_driver(driver);
  } else {
    const std::uint64_t before = recorded_calls();
    try {
      call_on(arguments[1], arguments.size() > 2 ? arguments[2] : "", driver);
      std::printf("caught=%d\n", recorded_calls() > before);
    } catch (const absent& here) {
      std::printf("absent=%s\n", here.why.c_str());
    }
  }
  std::fflush(stdout);
  // The driver's destructors are not ours to test.
  ::_exit(0);
}

selftest_result selftest_environment(const selftest_setting& with) {
  selftest_result result;
  answers said;
  result.ended = ask(with, {"hostwait", selftest_command}, said);
  result.preloaded = said["preloaded"] == "1";
  result.driver = said["driver"];
  result.driver_error = said["driver_error"];
  result.driver_version = std::atoi(said["driver_version"].c_str());
  return result;
}

route_result selftest_route(const selftest_setting& with, const char* route) {
  answers said;
  if (!ask(with, {"hostwait", selftest_command, route, with.helper}, said))
    return {route_state::missed, "the program that made the call did not end by itself"};
  if (const auto why = said.find("absent"); why != said.end())
    return {route_state::not_here, why->second};
  if (said["caught"] == "1") return {route_state::caught, ""};
  return {route_state::missed, "a call made that way was not seen"};
}

}  // namespace hostwait
