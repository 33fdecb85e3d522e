/* SPDX-License-Identifier: Apache-2.0
 * Copyright The hostwait authors
 * The version of hostwait; CMake reads it from here. */
#ifndef HOSTWAIT_VERSION_H
#define HOSTWAIT_VERSION_H

#define HOSTWAIT_VERSION_MAJOR 0
#define HOSTWAIT_VERSION_MINOR 1
#define HOSTWAIT_VERSION_PATCH 0
#define HOSTWAIT_VERSION_STRING "0.1.0"

#endif /* HOSTWAIT_VERSION_H */
