// SPDX-License-Identifier: Apache-2.0
// Copyright The hostwait authors
// Ends by an exception that nobody catches, after a call.
#include <sys/resource.h>

#include <stdexcept>

#include "guest.h"

int main() {
  const rlimit none{0, 0};
  setrlimit(RLIMIT_CORE, &none);
  guest_begin();
  guest_wait();
  throw std::runtime_error("nobody catches this");
}
