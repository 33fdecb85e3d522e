/* SPDX-License-Identifier: Apache-2.0
 * Copyright The hostwait authors
 * Processes that fork, exec, become daemons and die in every way: processes SCENARIO [WORD…]. */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "guest.h"

extern char** environ;
static char* self;

static int ended(pid_t child) {
  int status = 0;
  while (waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  return status;
}

static void say_end(const char* what, pid_t child) {
  printf("%s %#x\n", what, (unsigned)ended(child));
}

static void two_waits(void) {
  guest_begin();
  guest_wait();
  guest_wait();
}

static int one(void) {
  guest_begin();
  guest_wait();
  return 5;
}

/* One child by `make`, which waits once and ends with 5. */
static int child_by(pid_t (*make)(void)) {
  two_waits();
  fflush(stdout);
  const pid_t child = make();
  if (child == 0) {
    guest_wait();
    _exit(5);
  }
  say_end("child", child);
  return 0;
}

static pid_t raw_clone(void) {
  return (pid_t)syscall(SYS_clone, SIGCHLD, NULL, NULL, NULL, NULL);
}

static int by_vfork(void) {
  two_waits();
  char* const words[] = {self, (char*)"one", NULL};
  const pid_t child = vfork();
  if (child == 0) {
    execv(self, words);
    _exit(9);
  }
  say_end("exec", child);
  const pid_t second = vfork();
  if (second == 0) _exit(6);
  say_end("exit", second);
  guest_wait();
  return 0;
}

static int by_spawn(void) {
  two_waits();
  char* const words[] = {self, (char*)"one", NULL};
  pid_t child = 0;
  if (posix_spawn(&child, self, NULL, NULL, words, environ) != 0) return 9;
  say_end("spawn", child);
  return 0;
}

static int by_system(void) {
  two_waits();
  char command[4200];
  snprintf(command, sizeof command, "'%s' one", self);
  fflush(stdout);
  printf("system %#x\n", (unsigned)system(command));
  return 0;
}

/* A loader's workers: `count` forks, every `calling`th of which makes a call. */
static int many_forks(int count, int calling) {
  two_waits();
  int sum = 0, running = 0;
  for (int i = 0; i < count; ++i) {
    const pid_t child = fork();
    if (child < 0) return 9;
    if (child == 0) {
      if (i % calling == 0) guest_wait();
      _exit(i % 7);
    }
    if (++running < 8) continue;
    int status = 0;
    if (wait(&status) > 0) sum += WEXITSTATUS(status);
    --running;
  }
  for (int status = 0; running > 0 && wait(&status) > 0; --running) sum += WEXITSTATUS(status);
  printf("forks %d\n", sum);
  return 0;
}

static int by_exec(int clear) {
  two_waits();
  char folders[4200];
  snprintf(folders, sizeof folders, "LD_LIBRARY_PATH=%s", getenv("LD_LIBRARY_PATH"));
  char* const words[] = {self, (char*)"one", NULL};
  char* const variables[] = {folders, NULL};
  execve(self, words, clear ? variables : environ);
  return 9;
}

/* Closes everything and has its data in descriptor 2. */
static int become_daemon(const char* file) {
  const pid_t child = fork();
  if (child != 0) {
    say_end("daemon", child);
    return 0;
  }
  setsid();
  for (int i = 0; i < 256; ++i) close(i);
  if (open(file, O_RDWR | O_CREAT | O_TRUNC, 0600) != 0 || dup(0) != 1 || dup(0) != 2) _exit(8);
  guest_begin();
  guest_wait();
  if (write(2, "data\n", 5) != 5) _exit(7);
  _exit(0);
}

/* The same for a program that was started without a descriptor 2. */
static int data_in_2(const char* file) {
  if (open(file, O_RDWR | O_CREAT | O_TRUNC, 0600) != 2) return 8;
  guest_begin();
  guest_wait();
  return write(2, "data\n", 5) == 5 ? 0 : 7;
}

static void wait_at_end(void) {
  guest_wait();
  printf("at the end\n");
  fflush(stdout);
}

static int out;

static int end_by(const char* way, const char* detail) {
  const struct rlimit none = {0, 0};
  setrlimit(RLIMIT_CORE, &none);
  two_waits();
  printf("ending\n");
  fflush(stdout);
  if (strcmp(way, "_exit") == 0) _exit(7);
  if (strcmp(way, "quick_exit") == 0) {
    at_quick_exit(wait_at_end);
    quick_exit(8);
  }
  if (strcmp(way, "atexit") == 0) {
    atexit(wait_at_end);
    exit(11);
  }
  if (strcmp(way, "abort") == 0) abort();
  if (strcmp(way, "raise") == 0) raise(atoi(detail));
  if (strcmp(way, "fault") == 0) *(volatile int*)(getenv("PATH") == NULL ? &out : NULL) = 1;
  if (strcmp(way, "kill_parent") == 0) {
    const pid_t parent = getppid();
    kill(parent, SIGKILL);
    for (int i = 0; i < 60000 && getppid() == parent; ++i) usleep(1000);
    guest_wait();
    const int done = open(detail, O_CREAT | O_WRONLY, 0600);
    return done >= 0 ? 0 : 6;
  }
  if (strcmp(way, "kill_group") == 0) kill(0, SIGKILL);
  return 13;
}

/* Ends at once; its child goes on when the file `go` is there, and makes `done`. */
static int grandchild(const char* go, const char* done) {
  two_waits();
  const pid_t child = fork();
  if (child != 0) return 0;
  const int nowhere = open("/dev/null", O_RDWR);
  for (int i = 0; i < 3; ++i) dup2(nowhere, i);
  for (int i = 0; access(go, F_OK) != 0; ++i) {
    if (i == 6000) _exit(4);
    usleep(10000);
  }
  guest_wait();
  _exit(open(done, O_CREAT | O_WRONLY, 0600) >= 0 ? 0 : 5);
}

static volatile sig_atomic_t interrupts, continues;
static void count_interrupt(int number) {
  (void)number;
  ++interrupts;
}
static void count_continue(int number) {
  (void)number;
  ++continues;
}

/* At a terminal: says "ready", reads lines until "end", says what signals it met. */
static int terminal(const char* way) {
  struct sigaction action;
  memset(&action, 0, sizeof action);
  action.sa_flags = SA_RESTART;
  action.sa_handler = count_continue;
  sigaction(SIGCONT, &action, NULL);
  action.sa_handler = count_interrupt;
  if (strcmp(way, "handles") == 0) sigaction(SIGINT, &action, NULL);
  if (strcmp(way, "ignores") == 0) {
    action.sa_handler = SIG_IGN;
    sigaction(SIGTSTP, &action, NULL);
    sigaction(SIGINT, &action, NULL);
  }
  two_waits();
  printf("ready\n");
  fflush(stdout);
  char line[256];
  while (fgets(line, sizeof line, stdin) != NULL && strcmp(line, "end\n") != 0) {
    printf("line %s", line);
    fflush(stdout);
  }
  guest_wait();
  printf("interrupts %d continues %d\n", (int)interrupts, (int)continues);
  return 12;
}

int main(int argc, char** argv) {
  static char path[4100];
  const ssize_t size = readlink("/proc/self/exe", path, sizeof path - 1);
  self = size > 0 ? path : argv[0];
  const char* what = argc > 1 ? argv[1] : "";
  const char* first = argc > 2 ? argv[2] : "";
  const char* second = argc > 3 ? argv[3] : "";
  if (strcmp(what, "one") == 0) return one();
  if (strcmp(what, "fork") == 0) return child_by(fork);
  if (strcmp(what, "clone") == 0) return child_by(raw_clone);
  if (strcmp(what, "vfork") == 0) return by_vfork();
  if (strcmp(what, "spawn") == 0) return by_spawn();
  if (strcmp(what, "system") == 0) return by_system();
  if (strcmp(what, "forks") == 0) return many_forks(atoi(first), atoi(second));
  if (strcmp(what, "exec") == 0) return by_exec(strcmp(first, "clear") == 0);
  if (strcmp(what, "daemon") == 0) return become_daemon(first);
  if (strcmp(what, "data_in_2") == 0) return data_in_2(first);
  if (strcmp(what, "end") == 0) return end_by(first, second);
  if (strcmp(what, "grandchild") == 0) return grandchild(first, second);
  if (strcmp(what, "terminal") == 0) return terminal(first);
  fprintf(stderr, "processes: no scenario %s\n", what);
  return 2;
}
