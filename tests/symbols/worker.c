/* SPDX-License-Identifier: Apache-2.0
 * Copyright The hostwait authors
 *
 * A library that works on a thread of its own: it makes a context current there and calls a
 * function of the driver, or one of the program's. */
#define _GNU_SOURCE
#include <pthread.h>
#include <stddef.h>

static int (*make_current)(void*);
static void* current;
static int (*work)(void);
static int result;

static void* on_thread(void* unused) {
  pthread_setname_np(pthread_self(), "fake_worker");
  if (make_current(current) == 0) result = work() + 1; /* not a tail call: this frame stays */
  return unused;
}

int library_works(int (*set)(void*), void* context, int (*function)(void)) {
  pthread_t thread;
  make_current = set;
  current = context;
  work = function;
  if (pthread_create(&thread, NULL, on_thread, NULL) != 0) return -1;
  pthread_join(thread, NULL);
  return result - 1;
}
