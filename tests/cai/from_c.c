/* SPDX-License-Identifier: Apache-2.0
 * Copyright The hostwait authors
 * A C99 program links the archive with a C compiler and nothing but libc. */
#include <hostwait/cai.h>
#include <stdio.h>
#include <string.h>

int main(void) {
  hostwait_cai_policy policy;
  hostwait_cai_desc desc;
  hostwait_cai_error err;
  hostwait_cai_ready ready;
  hostwait_cai_ticket ticket;
  const int64_t shape[2] = {4, 5};
  hostwait_cai_policy_init(&policy);
  HOSTWAIT_CAI_INIT(err);
  if (hostwait_cai_describe("<f4", 4096, 2, shape, NULL, 0, &desc, &err) != HOSTWAIT_CAI_OK) {
    fprintf(stderr, "%s\n", err.text);
    return 1;
  }
  if (desc.nbytes != 80 || hostwait_cai_describe("f4", 1, 0, NULL, NULL, 0, &desc, &err) == 0 ||
      strcmp(err.key, "typestr") != 0) {
    return 2;
  }
  HOSTWAIT_CAI_INIT(ready);
  ready.kind = HOSTWAIT_CAI_READY_STREAM;
  ready.stream = 0x5100;
  if (hostwait_cai_acquire(&ready, 1, hostwait_cai_stream_value(0x5100), &policy, &ticket, &err) ||
      hostwait_cai_release(&ticket, &err)) {
    return 3;
  }
  return 0;
}
