// SPDX-License-Identifier: Apache-2.0
// Copyright The hostwait authors
// Built several times with other FRAME_MORE: libraries of one layout whose frames differ.
#ifndef FRAME_MORE
#define FRAME_MORE 0
#endif

extern "C" __attribute__((visibility("default"), noinline)) int call_back(int (*function)()) {
  volatile char room[FRAME_BYTES + FRAME_MORE];
  room[0] = 1;
  int result = function();
  return result + room[0];
}
