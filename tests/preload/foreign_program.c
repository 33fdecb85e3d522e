/* SPDX-License-Identifier: Apache-2.0
 * Copyright The hostwait authors
 * Says one line and ends with status 3: linked statically, and with musl. It uses the loader where
 * there is one, as a program would that a preload could disturb. */
#include <dlfcn.h>
#include <stdio.h>

int main(void) {
#ifdef USES_LOADER
  if (dlsym(RTLD_DEFAULT, "printf") == NULL || dlsym(RTLD_DEFAULT, "cuInit") != NULL) return 1;
#endif
  printf("left alone\n");
  return 3;
}
