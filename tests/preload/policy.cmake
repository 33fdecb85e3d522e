# SPDX-License-Identifier: Apache-2.0
# Copyright The hostwait authors
# A Catch2 program under the preload: frames, process frames, all six actions.
if(TARGET hostwait_sim)
  hostwait_add_catch_test(
    NAME preload.policy
    SOURCES policy_test.cpp
    LIBRARIES hostwait_api hostwait_cuda_headers hostwait_record_reader
    ENVIRONMENT
      LD_PRELOAD=$<TARGET_FILE:hostwait_shim>
      LD_LIBRARY_PATH=$<TARGET_FILE_DIR:hostwait_sim>
      ASAN_OPTIONS=verify_asan_link_order=0)
  add_dependencies(test_preload_policy hostwait_sim hostwait_shim)
endif()
if(TARGET hostwait_sim)
  hostwait_add_catch_test(
    NAME preload.armed
    SOURCES armed_test.cpp
    LIBRARIES hostwait_api hostwait_cuda_headers hostwait_record_reader
    ENVIRONMENT
      LD_PRELOAD=$<TARGET_FILE:hostwait_shim>
      LD_LIBRARY_PATH=$<TARGET_FILE_DIR:hostwait_sim>
      "HOSTWAIT_OPTIONS=arm=poll,queue_full:threshold_us=500"
      ASAN_OPTIONS=verify_asan_link_order=0)
  add_dependencies(test_preload_armed hostwait_sim hostwait_shim)
endif()
if(TARGET hostwait_sim)
  hostwait_add_catch_test(
    NAME preload.unlisted
    SOURCES unlisted_test.cpp
    LIBRARIES hostwait_api hostwait_cuda_headers hostwait_record_reader
    ENVIRONMENT
      LD_PRELOAD=$<TARGET_FILE:hostwait_shim>
      LD_LIBRARY_PATH=$<TARGET_FILE_DIR:hostwait_sim>
      "HOSTWAIT_OPTIONS=arm=unlisted:threshold_us=0"
      ASAN_OPTIONS=verify_asan_link_order=0)
  add_dependencies(test_preload_unlisted hostwait_sim hostwait_shim)
endif()
# Two threads: who broke whose capture, who was held up by whom.
if(TARGET hostwait_sim)
  foreach(part captures held)
    hostwait_add_catch_test(
      NAME preload.${part}
      SOURCES ${part}_test.cpp
      LIBRARIES hostwait_api hostwait_cuda_headers hostwait_record_reader
      ENVIRONMENT
        LD_PRELOAD=$<TARGET_FILE:hostwait_shim>
        LD_LIBRARY_PATH=$<TARGET_FILE_DIR:hostwait_sim>
        ASAN_OPTIONS=verify_asan_link_order=0)
    add_dependencies(test_preload_${part} hostwait_sim hostwait_shim)
  endforeach()
endif()
if(TARGET hostwait_sim)
  hostwait_add_catch_test(
    NAME preload.gap
    SOURCES gap_test.cpp
    LIBRARIES hostwait_api hostwait_cuda_headers hostwait_record_reader
    ENVIRONMENT
      LD_PRELOAD=$<TARGET_FILE:hostwait_shim>
      LD_LIBRARY_PATH=$<TARGET_FILE_DIR:hostwait_sim>
      HOSTWAIT_OPTIONS=gap=1
      ASAN_OPTIONS=verify_asan_link_order=0)
  add_dependencies(test_preload_gap hostwait_sim hostwait_shim)
endif()
