/* SPDX-License-Identifier: Apache-2.0
 * Copyright The hostwait authors
 * Stands in for libhostwait.so where a test is about the command line only: it does nothing but be
 * in the process. */
const void* hostwait_api;
