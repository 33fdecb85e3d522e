/* SPDX-License-Identifier: Apache-2.0
 * Copyright The hostwait authors
 * A program that has the policy interface only inside a static library. */
#include <string.h>

int use_api(int want_present);

int main(int argc, char** argv) {
  return use_api(argc > 1 && strcmp(argv[1], "present") == 0) == 0 ? 0 : 1;
}
