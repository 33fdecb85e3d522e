/* SPDX-License-Identifier: Apache-2.0
 * Copyright The hostwait authors
 * What the route programs share: checks, and questions to the preloaded double. A program is also
 * run without the preload where the point is that nothing changes. */
#ifndef ROUTE_H
#define ROUTE_H

#include <dlfcn.h>
#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int route_failures;

#define CHECK(condition)                                                        \
  do {                                                                          \
    if (!(condition)) {                                                         \
      fprintf(stderr, "%s:%d: not true: %s\n", __FILE__, __LINE__, #condition); \
      ++route_failures;                                                         \
    }                                                                           \
  } while (0)

static inline void* route_question(const char* name) {
  void* found = dlsym(RTLD_DEFAULT, name);
  if (found == NULL) {
    fprintf(stderr, "the double is not preloaded: no %s\n", name);
    exit(3);
  }
  return found;
}

/* Whether the double is there at all. */
static inline int route_preloaded(void) {
  return dlsym(RTLD_DEFAULT, "routes_wrapped") != NULL;
}

static inline int wrapped_in(const char* symbol, unsigned copy) {
  return ((int (*)(const char*, unsigned))route_question("routes_wrapped"))(symbol, copy);
}
static inline int wrapped(const char* symbol) {
  return wrapped_in(symbol, 0);
}
static inline unsigned route_number(const char* question) {
  return ((unsigned (*)(void))route_question(question))();
}
static inline const char* route_notes(void) {
  static char text[8192];
  unsigned long (*ask)(char*, unsigned long) =
      (unsigned long (*)(char*, unsigned long))route_question("routes_notes");
  text[ask(text, sizeof text - 1)] = '\0';
  return text;
}

enum { ROUTE_DLSYM = 1, ROUTE_DLVSYM = 2, ROUTE_GET_PROC_ADDRESS = 4, ROUTE_LINKED = 8 };

static inline int route_result(void) {
  if (route_failures != 0) fprintf(stderr, "%d checks failed\n", route_failures);
  return route_failures == 0 ? 0 : 1;
}

#endif
