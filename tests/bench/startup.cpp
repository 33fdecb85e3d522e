// SPDX-License-Identifier: Apache-2.0
// Copyright The hostwait authors
// What it costs to start a process that never uses CUDA: `true` alone, under the preload, and under
// `hostwait run`, by turns. startup SHIM TOOL [ROUNDS] prints quartiles in milliseconds as JSON.
#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

extern char** environ;

namespace {

double now_ms() {
  timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return static_cast<double>(t.tv_sec) * 1e3 + static_cast<double>(t.tv_nsec) * 1e-6;
}

// Milliseconds from spawn to the end, or a negative number where it did not end with 0.
double start(const std::vector<std::string>& command, const std::vector<std::string>& environment) {
  std::vector<char*> arguments, variables;
  for (const std::string& part : command) arguments.push_back(const_cast<char*>(part.c_str()));
  for (const std::string& part : environment) variables.push_back(const_cast<char*>(part.c_str()));
  arguments.push_back(nullptr);
  variables.push_back(nullptr);
  posix_spawn_file_actions_t files;
  posix_spawn_file_actions_init(&files);
  posix_spawn_file_actions_addopen(&files, 2, "/dev/null", O_WRONLY, 0);
  pid_t pid = 0;
  const double before = now_ms();
  const int error =
      posix_spawn(&pid, arguments[0], &files, nullptr, arguments.data(), variables.data());
  int status = 1;
  if (error == 0) waitpid(pid, &status, 0);
  const double after = now_ms();
  posix_spawn_file_actions_destroy(&files);
  return error == 0 && WIFEXITED(status) && WEXITSTATUS(status) == 0 ? after - before : -1;
}

double at(const std::vector<double>& sorted, double part) {
  return sorted[static_cast<std::size_t>(part * static_cast<double>(sorted.size() - 1))];
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 3) {
    std::fprintf(stderr, "startup SHIM TOOL [ROUNDS]\n");
    return 2;
  }
  const int rounds = argc > 3 ? std::atoi(argv[3]) : 200;
  const std::string program = access("/bin/true", X_OK) == 0 ? "/bin/true" : "/usr/bin/true";
  const std::string folder = "/tmp";
  std::vector<std::string> plain;
  for (char** variable = environ; *variable != nullptr; variable++) {
    const std::string text = *variable;
    if (text.rfind("LD_PRELOAD=", 0) != 0 && text.rfind("HOSTWAIT_OPTIONS=", 0) != 0)
      plain.push_back(text);
  }
  std::vector<std::string> preloaded = plain;
  preloaded.push_back(std::string("LD_PRELOAD=") + argv[1]);
  std::vector<double> times[3];
  for (int i = 0; i < rounds + 10; i++) {
    const double one[] = {start({program}, plain), start({program}, preloaded),
                          start({argv[2], "run", "--output", folder, "--", program}, plain)};
    for (int kind = 0; kind < 3; kind++) {
      if (one[kind] < 0) {
        const char* const names[] = {"true", "true under the preload", "hostwait run -- true"};
        std::fprintf(stderr, "startup: %s failed\n", names[kind]);
        return 1;
      }
      if (i >= 10) times[kind].push_back(one[kind]);  // the first ten fill caches
    }
  }
  // The quartiles besides: on a busy machine the medians of three kinds drift apart by chance.
  const char* const keys[] = {"plain", "preload", "run"};
  std::printf("{\"rounds\": %d", rounds);
  for (int kind = 0; kind < 3; kind++) {
    std::sort(times[kind].begin(), times[kind].end());
    std::printf(", \"%s\": [%.4f, %.4f, %.4f]", keys[kind], at(times[kind], 0.25),
                at(times[kind], 0.5), at(times[kind], 0.75));
  }
  std::printf("}\n");
  return 0;
}
