# SPDX-License-Identifier: Apache-2.0
# Copyright The hostwait authors
# The record as a program under the preload leaves it.
if(TARGET hostwait_sim)
  set(hostwait_record_folder ${CMAKE_CURRENT_BINARY_DIR}/records)
  file(MAKE_DIRECTORY ${hostwait_record_folder})
  hostwait_add_catch_test(
    NAME record.preload
    SOURCES record_test.cpp
    LIBRARIES hostwait_api hostwait_cuda_headers ${CMAKE_DL_LIBS}
    ENVIRONMENT
      LD_PRELOAD=$<TARGET_FILE:hostwait_shim>
      LD_LIBRARY_PATH=$<TARGET_FILE_DIR:hostwait_sim>
      HOSTWAIT_OPTIONS=output=${hostwait_record_folder}
      ASAN_OPTIONS=verify_asan_link_order=0)
  target_compile_definitions(test_record_preload
                             PRIVATE HOSTWAIT_TEST_FOLDER="${hostwait_record_folder}")
  add_dependencies(test_record_preload hostwait_sim hostwait_shim)
endif()
