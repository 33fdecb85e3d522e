/* SPDX-License-Identifier: Apache-2.0
 * Copyright The hostwait authors
 * An outside C program over the exchange library: describes an array and reads it back. */
#include <hostwait/cai.h>
#include <stdio.h>
#include <string.h>

int main(void) {
  const int64_t shape[2] = {3, 4};
  int64_t strides[2] = {0, 0};
  char typestr[40];
  hostwait_cai_desc desc;
  hostwait_cai_error error;
  memset(&desc, 0, sizeof desc);
  memset(&error, 0, sizeof error);
  desc.size = (uint32_t)sizeof desc;
  error.size = (uint32_t)sizeof error;
  if (hostwait_cai_describe("<f4", 4096, 2, shape, NULL, 0, &desc, &error) != HOSTWAIT_CAI_OK) {
    fprintf(stderr, "describe failed\n");
    return 1;
  }
  if (hostwait_cai_element_strides(&desc, strides, &error) != HOSTWAIT_CAI_OK || strides[0] != 4 ||
      strides[1] != 1) {
    fprintf(stderr, "strides are not those of C order\n");
    return 1;
  }
  if (hostwait_cai_typestr(&desc, typestr, sizeof typestr) != 3 || strcmp(typestr, "<f4") != 0) {
    fprintf(stderr, "the type did not come back\n");
    return 1;
  }
  printf("exchange library %s\n", hostwait_cai_version());
  return 0;
}
