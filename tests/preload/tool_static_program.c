/* SPDX-License-Identifier: Apache-2.0
 * Copyright The hostwait authors
 * A program that no preload reaches. */
int main(void) {
  return 3;
}
