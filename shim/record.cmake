# SPDX-License-Identifier: Apache-2.0
# Copyright The hostwait authors
list(
  APPEND
  hostwait_core_sources
  record.cpp
  record_file.cpp
  record_gaps.cpp
  record_intern.cpp
  record_memory.cpp
  record_modules.cpp
  record_open.cpp
  record_relations.cpp
  record_sites.cpp
  record_store.cpp
  record_threads.cpp)
