/* SPDX-License-Identifier: Apache-2.0
 * Copyright The hostwait authors
 *
 * A plugin whose one function waits; FUNCTION names it. */
#ifndef FUNCTION
#define FUNCTION plugin_waits
#endif
#ifdef PADDING /* other contents, other addresses, another build id */
volatile char padding[PADDING];
__attribute__((noinline, used)) int before(void) {
  return padding[1] + padding[2];
}
#endif
int FUNCTION(int (*call)(void)) {
  int result = call(); /* the wait */
  return result + 1;
}
