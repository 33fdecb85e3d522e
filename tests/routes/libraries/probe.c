// SPDX-License-Identifier: Apache-2.0
// Copyright The hostwait authors
// The end of the chain of probes.
int probe(void) {
  return 100;
}
