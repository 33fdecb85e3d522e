// SPDX-License-Identifier: Apache-2.0
// Copyright The hostwait authors
// The part of `doctor` that runs in children of its own: they load the driver, which may crash, and
// make one known call on each route.
#pragma once

#include <array>
#include <string>
#include <vector>

namespace hostwait {

inline constexpr const char* selftest_command = "--selftest";

// Without a further word: what is loaded. With "ROUTE HELPER": one call on that route. Prints
// key=value lines and returns the exit status.
int run_selftest(const std::vector<std::string>& arguments);

// The ways to the driver that are tried: by name, by version, both forms of cuGetProcAddress, the
// one that runtimes use (they ask cuGetProcAddress for itself), a library linked with -lcuda, and
// a library opened with RTLD_DEEPBIND.
inline constexpr std::array selftest_routes = {
    "dlsym", "dlvsym", "cuGetProcAddress", "cuGetProcAddress_v2", "runtime", "linked", "deepbind"};

struct selftest_setting {
  std::string preload;  // LD_PRELOAD of the children
  std::string helper;   // libhostwait_selftest.so, "" = missing
  std::string run_id;   // of the records that the children leave
};

struct selftest_result {
  bool ended = false;        // within its time, by itself
  bool preloaded = false;    // the shim was in the process
  std::string driver;        // path of libcuda, "" = not loaded
  std::string driver_error;  // what the loader said
  int driver_version = 0;    // as cuDriverGetVersion says it
};
selftest_result selftest_environment(const selftest_setting&);

enum class route_state { caught, missed, not_here };
struct route_result {
  route_state state = route_state::missed;
  std::string why;  // of the other two states
};
route_result selftest_route(const selftest_setting&, const char* route);

}  // namespace hostwait
