# SPDX-License-Identifier: Apache-2.0
# Copyright The hostwait authors
# tools.doctor: the true library on the simulated driver, and one broken case for each line.
if(NOT TARGET hostwait_tool OR NOT TARGET hostwait_sim)
  return()
endif()
add_test(NAME tools.doctor COMMAND Python3::Interpreter -B
                                   ${CMAKE_CURRENT_LIST_DIR}/tool_doctor_test.py)
set(doctor_environment
    HOSTWAIT_TOOL=$<TARGET_FILE:hostwait_tool>
    HOSTWAIT_LIBDIR=$<TARGET_FILE_DIR:hostwait_shim>
    HOSTWAIT_STUB=${PROJECT_BINARY_DIR}/tests/stub_shim
    HOSTWAIT_SIM=$<TARGET_FILE_DIR:hostwait_sim>
    "HOSTWAIT_MAKE_RECORDS=$<$<TARGET_EXISTS:hostwait_make_records>:$<TARGET_FILE:hostwait_make_records>>"
    HOSTWAIT_SCHEMAS=${PROJECT_SOURCE_DIR}/docs/schemas
    ASAN_OPTIONS=verify_asan_link_order=0)
set_tests_properties(tools.doctor PROPERTIES SKIP_RETURN_CODE 77 TIMEOUT 300
                                           ENVIRONMENT "${doctor_environment}")
