/* SPDX-License-Identifier: Apache-2.0
 * Copyright The hostwait authors
 * Calls from many places, so that the record has to grow: storage SITES. Prints a sum that depends
 * on every call. */
#include "guest.h"

static int (*call)(void);

/* A distinct stack for each number: a frame per bit, one of two functions. */
static int low(unsigned number, int depth);
static int high(unsigned number, int depth);
static inline __attribute__((always_inline)) int below(unsigned number, int depth) {
  int result;
  if (depth == 0) {
    result = call();
  } else if ((number & 1) != 0) {
    result = high(number >> 1, depth - 1);
  } else {
    result = low(number >> 1, depth - 1);
  }
  __asm__ volatile("" ::: "memory"); /* no tail call */
  return result;
}
static __attribute__((noinline)) int low(unsigned number, int depth) {
  return below(number, depth);
}
static __attribute__((noinline)) int high(unsigned number, int depth) {
  __asm__ volatile("" ::: "memory");
  return below(number, depth);
}

int main(int argc, char** argv) {
  const unsigned sites = argc > 1 ? (unsigned)atoi(argv[1]) : 1;
  guest_begin();
  call = (int (*)(void))guest_look("cuCtxSynchronize");
  long sum = 0;
  for (unsigned i = 0; i < sites; ++i) sum += low(i, 12) + 1;
  printf("sum %ld\n", sum);
  return sum == (long)sites ? 0 : 1;
}
