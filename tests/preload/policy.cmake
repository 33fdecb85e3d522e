# SPDX-License-Identifier: Apache-2.0
# Copyright The hostwait authors
# Catch2 programs under the preload that read their own record while it is written.
if(NOT TARGET hostwait_sim)
  return()
endif()
# Frames, process frames, all six actions; two threads: who broke whose capture, who held up whom.
foreach(part policy captures held)
  hostwait_preload_test(NAME preload.${part} SOURCES ${part}_test.cpp
                        LIBRARIES hostwait_record_reader)
endforeach()
# Kinds that are armed at start.
hostwait_preload_test(
  NAME preload.armed
  SOURCES armed_test.cpp
  LIBRARIES hostwait_record_reader
  OPTIONS arm=poll,queue_full threshold_us=500)
hostwait_preload_part(preload.armed allowed arm=poll,queue_full threshold_us=500)
hostwait_preload_test(
  NAME preload.unlisted
  SOURCES unlisted_test.cpp
  LIBRARIES hostwait_record_reader
  OPTIONS arm=unlisted threshold_us=0)
hostwait_preload_test(NAME preload.gap SOURCES gap_test.cpp LIBRARIES hostwait_record_reader
                      OPTIONS gap=1)
