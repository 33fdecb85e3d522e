// SPDX-License-Identifier: Apache-2.0
// Copyright The hostwait authors
// A library whose IFUNC resolver calls dlsym.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stddef.h>

static int with(void) {
  return 7;
}
static int without(void) {
  return 8;
}

__attribute__((used)) static int (*resolver(void))(void) {
  return dlsym(RTLD_DEFAULT, "getpid") != NULL ? with : without;
}
static int hidden_choice(void) __attribute__((ifunc("resolver")));

int chosen(void) {
  return hidden_choice();
}
