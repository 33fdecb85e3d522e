# SPDX-License-Identifier: Apache-2.0
# Copyright The hostwait authors
list(APPEND hostwait_core_sources python_stack.cpp python_offsets.cpp python_lines.cpp python_site.cpp)
