// SPDX-License-Identifier: Apache-2.0
// Copyright The hostwait authors
// A process that ends with cached events makes no driver call after main.
#include <cstdio>
#include <cstdlib>

#include "cai/support/fake_driver.hpp"

namespace {

cai_test::fake_driver* driver = nullptr;
int calls_in_main = -1;

// Registered before the library's first use, hence run after everything that it might register.
void look() {
  if (calls_in_main < 0 || driver->calls != calls_in_main) {
    fprintf(stderr, "%d driver calls after main\n", driver->calls - calls_in_main);
    _Exit(1);
  }
}

}  // namespace

int main() {
  atexit(look);
  driver = new cai_test::fake_driver;
  driver->contexts[0x3000] = {"ctx0", 0, true, 1};
  driver->streams[0x5100] = {"S", 0x3000, false};
  driver->streams[0x6100] = {"C", 0x3000, false};
  driver->initial_context = 0x3000;
  driver->use();
  hostwait_cai_ready in;
  HOSTWAIT_CAI_INIT(in);
  in.kind = HOSTWAIT_CAI_READY_STREAM;
  in.stream = 0x5100;
  in.device = -1;
  hostwait_cai_ticket ticket;
  if (hostwait_cai_acquire(&in, 1, {0x6100}, nullptr, &ticket, nullptr) != 0 ||
      hostwait_cai_release(&ticket, nullptr) != 0 ||
      hostwait_cai_retire({0x6100}, &in, nullptr) != 0 || driver->actions.size() != 2) {
    return 2;
  }
  calls_in_main = driver->calls;
  return 0;
}
