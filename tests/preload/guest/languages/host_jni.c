/* SPDX-License-Identifier: Apache-2.0
 * Copyright The hostwait authors
 * The native half of Host.java. */
#include <jni.h>

#include "guest.h"

JNIEXPORT jint JNICALL Java_Host_begin(JNIEnv* environment, jclass type) {
  (void)environment;
  (void)type;
  guest_begin();
  return 0;
}

JNIEXPORT jint JNICALL Java_Host_waitOnce(JNIEnv* environment, jclass type) {
  (void)environment;
  (void)type;
  return guest_here() + guest_wait();
}
