# SPDX-License-Identifier: Apache-2.0
# Copyright The hostwait authors
list(APPEND hostwait_core_sources unwind.cpp unwind_cfi.cpp unwind_objects.cpp)
