# SPDX-License-Identifier: Apache-2.0
# Copyright The hostwait authors
hostwait_add_catch_test(NAME policy.decisions SOURCES policy_test.cpp LIBRARIES hostwait_shim_core)
hostwait_add_catch_test(NAME policy.options SOURCES options_test.cpp LIBRARIES hostwait_shim_core)
