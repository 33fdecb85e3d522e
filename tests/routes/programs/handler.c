/* SPDX-License-Identifier: Apache-2.0
 * Copyright The hostwait authors
 * The first look-ups and calls of a process come from a signal handler; later ones interrupt calls
 * of the same thread. */
#include <signal.h>
#include <sys/time.h>

#include "../route.h"

static void* driver;
static volatile sig_atomic_t handled, failed;

static void handler(int number) {
  (void)number;
  const int before = errno;
  int (*call)(void) = (int (*)(void))dlsym(driver, "cuCtxSynchronize");
  if (call == NULL || call() != 0 || errno != before) failed = 1;
  ++handled;
}

int main(void) {
  driver = dlopen("libcuda.so.1", RTLD_LAZY);
  CHECK(driver != NULL);
  struct sigaction action;
  memset(&action, 0, sizeof action);
  action.sa_handler = handler;
  sigaction(SIGALRM, &action, NULL);
  raise(SIGALRM);
  CHECK(handled == 1 && !failed);
  int (*call)(void*) = (int (*)(void*))dlsym(driver, "cuStreamSynchronize");
  const struct itimerval every = {{0, 500}, {0, 500}}, never = {{0, 0}, {0, 0}};
  setitimer(ITIMER_REAL, &every, NULL);
  unsigned calls = 0;
  for (; handled < 200; ++calls)
    if (call(NULL) != 0) failed = 1;
  setitimer(ITIMER_REAL, &never, NULL);
  CHECK(!failed);
  if (!route_preloaded()) return route_result();
  CHECK(wrapped("cuCtxSynchronize") == handled);
  CHECK((unsigned)wrapped("cuStreamSynchronize") == calls);
  return route_result();
}
