/* SPDX-License-Identifier: Apache-2.0
 * Copyright The hostwait authors
 * What libhostwait_selftest.so is linked against: never installed, never run. */
int cuCtxSynchronize(void);
int cuCtxSynchronize(void) {
  return 999; /* CUDA_ERROR_UNKNOWN */
}
