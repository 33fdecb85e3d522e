// SPDX-License-Identifier: Apache-2.0
// Copyright The hostwait authors
// The parent's side of `run`: fork, signals, job control, exit.
#include "child.hpp"

#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/random.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>

#include "failure.hpp"

extern char** environ;

namespace hostwait {

namespace {

// Passed on to the child when somebody sends them to us alone.
constexpr int forwarded[] = {SIGHUP,  SIGINT,  SIGQUIT, SIGTERM, SIGUSR1,
                             SIGUSR2, SIGALRM, SIGCONT, SIGTSTP};

std::vector<char*> pointers(const std::vector<std::string>& words) {
  std::vector<char*> list;
  for (const std::string& word : words) list.push_back(const_cast<char*>(word.c_str()));
  list.push_back(nullptr);
  return list;
}

std::vector<std::string> changed_environment(const environment_changes& changes) {
  std::vector<std::string> variables;
  for (char** each = environ; *each != nullptr; ++each) {
    const std::string variable = *each;
    const std::string name = variable.substr(0, variable.find('='));
    const bool replaced = std::any_of(changes.begin(), changes.end(),
                                      [&](const auto& change) { return change.first == name; });
    if (!replaced) variables.push_back(variable);
  }
  for (const auto& [name, value] : changes) variables.push_back(name + '=' + value);
  return variables;
}

// 0, or the errno of execve. vfork: the parent's page tables are not copied and it waits until the
// exec, so the child may use its memory; it only makes system calls.
int start(const char* path, char* const* words, char* const* variables, const sigset_t& mask,
          const struct sigaction& child_action, pid_t& pid) {
  volatile int error = 0;
  pid = ::vfork();
  if (pid == 0) {
    ::sigaction(SIGCHLD, &child_action, nullptr);
    ::sigprocmask(SIG_SETMASK, &mask, nullptr);
    ::execve(path, words, variables);
    error = errno;
    ::_exit(127);
  }
  if (pid < 0) return errno;
  if (error != 0) ::waitpid(pid, nullptr, 0);
  return error;
}

// Whether the child goes on, or has ended, without us: whoever continued us may have continued the
// whole group, one process after the other. Leaves what waitpid would say.
bool goes_on(pid_t child) {
  for (int look = 0; look < 20; ++look) {
    siginfo_t info{};
    if (::waitid(P_PID, static_cast<id_t>(child), &info,
                 WEXITED | WCONTINUED | WNOHANG | WNOWAIT) != 0 ||
        info.si_pid == child)
      return true;
    ::usleep(1000);
  }
  return false;
}

// Stops this process as the child was stopped, until somebody continues it.
void stop_like(int signal, pid_t child) {
  struct sigaction normal {
  }, before{};
  normal.sa_handler = SIG_DFL;
  ::sigaction(signal, &normal, &before);
  sigset_t one, mask;
  sigemptyset(&one);
  sigaddset(&one, signal);
  ::kill(::getpid(), signal);
  ::sigprocmask(SIG_UNBLOCK, &one, &mask);  // stops here
  ::sigprocmask(SIG_SETMASK, &mask, nullptr);
  ::sigaction(signal, &before, nullptr);
  if (!goes_on(child)) ::kill(child, SIGCONT);
}

int wait_for(pid_t child, const sigset_t& watched) {
  bool stopped = false;
  for (;;) {
    siginfo_t info{};
    const int signal = ::sigwaitinfo(&watched, &info);
    if (signal < 0) continue;  // EINTR
    if (signal != SIGCHLD) {
      // What the terminal sends (SI_KERNEL) goes to the whole group: the child has it already.
      if (signal == SIGCONT) {
        // A second one would run the program's handler twice.
        if (stopped && !goes_on(child)) ::kill(child, SIGCONT);
      } else if (info.si_code <= 0 && info.si_pid != child) {
        ::kill(child, signal);
      } else if (signal == SIGTSTP && stopped) {
        stop_like(SIGTSTP, child);
      }
      continue;
    }
    int status = 0;
    while (::waitpid(child, &status, WNOHANG | WUNTRACED | WCONTINUED) == child) {
      stopped = WIFSTOPPED(status);
      if (WIFCONTINUED(status)) continue;
      if (!stopped) return status;
      const int by = WSTOPSIG(status);
      // Not for SIGSTOP: whoever stopped the child alone will continue the child alone.
      if (by == SIGTSTP || by == SIGTTIN || by == SIGTTOU) stop_like(by, child);
    }
  }
}

}  // namespace

std::string random_run_id() {
  unsigned char bytes[16] = {};
  if (::getrandom(bytes, sizeof bytes, 0) != static_cast<ssize_t>(sizeof bytes))
    throw failure(exit_usage, "no random bytes from the kernel for the run's id");
  std::string id;
  for (const unsigned char byte : bytes) {
    id += "0123456789abcdef"[byte >> 4];
    id += "0123456789abcdef"[byte & 15];
  }
  return id;
}

std::string find_program(const std::string& word) {
  const auto is_executable = [](const std::string& path, int& error) {
    struct stat status {};
    if (::stat(path.c_str(), &status) != 0) {
      error = errno;
      return false;
    }
    if (S_ISDIR(status.st_mode)) {
      error = EISDIR;
      return false;
    }
    if (::access(path.c_str(), X_OK) != 0) {
      error = errno;
      return false;
    }
    return true;
  };
  int error = ENOENT;
  if (word.find('/') != std::string::npos) {
    if (is_executable(word, error)) return word;
  } else if (!word.empty()) {
    const char* variable = std::getenv("PATH");
    const std::string path = variable != nullptr ? variable : "/usr/local/bin:/usr/bin:/bin";
    for (std::size_t begin = 0; begin <= path.size();) {
      const std::size_t end = std::min(path.find(':', begin), path.size());
      const std::string folder = path.substr(begin, end - begin);
      const std::string candidate = (folder.empty() ? "." : folder) + '/' + word;
      int here = 0;
      if (is_executable(candidate, here)) return candidate;
      // As a shell: "permission denied" only where nothing better is found, a folder never.
      if (here == EACCES) error = here;
      begin = end + 1;
    }
  }
  if (error == ENOENT || error == ENOTDIR)
    throw failure(exit_not_found, word + ": program not found; give its path or put it into PATH");
  throw failure(exit_cannot_execute, word + ": cannot be executed: " + std::strerror(error) +
                                         "; give a program, not a script without x permission");
}

int run_child(const std::string& path, const std::vector<std::string>& words,
              const environment_changes& changes) {
  const std::vector<std::string> variables = changed_environment(changes);
  sigset_t watched, original;
  sigemptyset(&watched);
  sigaddset(&watched, SIGCHLD);
  for (const int signal : forwarded) {
    // A signal that was ignored when we began (nohup) stays ignored, here and in the child.
    struct sigaction action {};
    if (::sigaction(signal, nullptr, &action) == 0 && action.sa_handler != SIG_IGN)
      sigaddset(&watched, signal);
  }
  ::sigprocmask(SIG_BLOCK, &watched, &original);
  struct sigaction normal {
  }, child_action{};
  normal.sa_handler = SIG_DFL;
  ::sigaction(SIGCHLD, &normal, &child_action);  // ignored, children could not be waited for

  pid_t child = -1;
  int error = start(path.c_str(), pointers(words).data(), pointers(variables).data(), original,
                    child_action, child);
  if (error == ENOEXEC) {  // a script without "#!": shells run it themselves
    std::vector<std::string> shell = {"/bin/sh", path};
    shell.insert(shell.end(), words.begin() + 1, words.end());
    error = start("/bin/sh", pointers(shell).data(), pointers(variables).data(), original,
                  child_action, child);
  }
  if (error != 0) {
    ::sigprocmask(SIG_SETMASK, &original, nullptr);
    throw failure(error == ENOENT ? exit_not_found : exit_cannot_execute,
                  path + ": cannot be executed: " + std::strerror(error));
  }
  const int status = wait_for(child, watched);
  // From here on a signal ends the tool as usual; those that came too late are dropped.
  struct sigaction ignore {};
  ignore.sa_handler = SIG_IGN;
  for (const int signal : forwarded) {
    struct sigaction before {};
    ::sigaction(signal, &ignore, &before);  // discards what is pending
    ::sigaction(signal, &before, nullptr);
  }
  ::sigprocmask(SIG_SETMASK, &original, nullptr);
  return status;
}

void end_as(int wait_status) {
  if (!WIFSIGNALED(wait_status)) std::exit(WEXITSTATUS(wait_status));
  const int signal = WTERMSIG(wait_status);
  // The program has left its core already. The limit does not reach a piped core_pattern.
  const rlimit none{0, 0};
  ::setrlimit(RLIMIT_CORE, &none);
  ::prctl(PR_SET_DUMPABLE, 0, 0, 0, 0);
  struct sigaction normal {};
  normal.sa_handler = SIG_DFL;
  ::sigaction(signal, &normal, nullptr);
  sigset_t one;
  sigemptyset(&one);
  sigaddset(&one, signal);
  ::sigprocmask(SIG_UNBLOCK, &one, nullptr);
  ::kill(::getpid(), signal);
  std::_Exit(128 + signal);
}

}  // namespace hostwait
