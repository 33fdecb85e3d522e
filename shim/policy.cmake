# SPDX-License-Identifier: Apache-2.0
# Copyright The hostwait authors
list(APPEND hostwait_core_sources policy.cpp options.cpp)
