# SPDX-License-Identifier: Apache-2.0
# Copyright The hostwait authors
# The verdict rules.
list(APPEND hostwait_core_sources capture_rules.cpp classify.cpp profile.cpp)
