// SPDX-License-Identifier: Apache-2.0
// Copyright The hostwait authors
// Built twice with another FRAME_BYTES: two libraries of one layout whose frames differ.
extern "C" __attribute__((visibility("default"), noinline)) int call_back(int (*function)()) {
  volatile char room[FRAME_BYTES];
  room[0] = 1;
  int result = function();
  return result + room[0];
}
