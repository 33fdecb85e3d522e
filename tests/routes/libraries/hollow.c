// SPDX-License-Identifier: Apache-2.0
// Copyright The hostwait authors
// Has the driver's SONAME and one of its names, but is not the driver.
int cuCtxSynchronize(void) {
  return 5;
}
