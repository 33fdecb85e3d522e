# SPDX-License-Identifier: Apache-2.0
# Copyright The hostwait authors
# The command line tool as a whole, with ordinary programs and records made for the test.
if(NOT TARGET hostwait_tool)
  return()
endif()
find_package(Python3 REQUIRED COMPONENTS Interpreter)

add_library(hostwait_stub_shim SHARED ${CMAKE_CURRENT_LIST_DIR}/tool_stub_shim.c)
set_target_properties(hostwait_stub_shim PROPERTIES OUTPUT_NAME hostwait LIBRARY_OUTPUT_DIRECTORY
                                                    ${PROJECT_BINARY_DIR}/tests/stub_shim)

add_executable(hostwait_static_program ${CMAKE_CURRENT_LIST_DIR}/tool_static_program.c)
target_link_options(hostwait_static_program PRIVATE -static)
set_target_properties(hostwait_static_program PROPERTIES RUNTIME_OUTPUT_DIRECTORY
                                                         ${PROJECT_BINARY_DIR}/tests)

foreach(part run signals records top compare)
  add_test(NAME tools.${part}
           COMMAND Python3::Interpreter -B ${CMAKE_CURRENT_LIST_DIR}/tool_${part}_test.py)
  set_tests_properties(
    tools.${part}
    PROPERTIES
      SKIP_RETURN_CODE
      77
      TIMEOUT
      300
      ENVIRONMENT
      "ASAN_OPTIONS=verify_asan_link_order=0;HOSTWAIT_TOOL=$<TARGET_FILE:hostwait_tool>;HOSTWAIT_LIBDIR=$<TARGET_FILE_DIR:hostwait_stub_shim>;HOSTWAIT_MAKE_RECORDS=$<TARGET_FILE:hostwait_make_records>;HOSTWAIT_STATIC_PROGRAM=$<TARGET_FILE:hostwait_static_program>;HOSTWAIT_SCHEMAS=${PROJECT_SOURCE_DIR}/docs/schemas"
  )
endforeach()

# With the real shim, on the simulated driver: fingerprints of programs that are built again
# elsewhere, and a program that hangs in the driver.
if(TARGET hostwait_sim)
  add_executable(hostwait_hang_program ${CMAKE_CURRENT_LIST_DIR}/hang_program.cpp)
  target_include_directories(hostwait_hang_program PRIVATE ${PROJECT_SOURCE_DIR}/tests)
  target_link_libraries(hostwait_hang_program PRIVATE hostwait_cuda_headers hostwait_warnings
                                                      ${CMAKE_DL_LIBS})
  target_compile_options(hostwait_hang_program PRIVATE -g)
  set_target_properties(hostwait_hang_program PROPERTIES RUNTIME_OUTPUT_DIRECTORY
                                                         ${PROJECT_BINARY_DIR}/tests)
  foreach(part identity hang)
    add_test(NAME tools.${part} COMMAND Python3::Interpreter -B
                                        ${CMAKE_CURRENT_LIST_DIR}/tool_${part}_test.py)
    set_tests_properties(
      tools.${part}
      PROPERTIES
        SKIP_RETURN_CODE
        77
        TIMEOUT
        300
        ENVIRONMENT
        "ASAN_OPTIONS=verify_asan_link_order=0;HOSTWAIT_TOOL=$<TARGET_FILE:hostwait_tool>;HOSTWAIT_LIBDIR=$<TARGET_FILE_DIR:hostwait_stub_shim>;HOSTWAIT_MAKE_RECORDS=$<TARGET_FILE:hostwait_make_records>;HOSTWAIT_SCHEMAS=${PROJECT_SOURCE_DIR}/docs/schemas;HOSTWAIT_CXX=${CMAKE_CXX_COMPILER};HOSTWAIT_SHIM_DIR=$<TARGET_FILE_DIR:hostwait_shim>;HOSTWAIT_SIM_DIR=$<TARGET_FILE_DIR:hostwait_sim>;HOSTWAIT_HANG_PROGRAM=$<TARGET_FILE:hostwait_hang_program>"
    )
  endforeach()
endif()
