# SPDX-License-Identifier: Apache-2.0
# Copyright The hostwait authors
# The command line tool's parts, on records that tests/support/record_builder.cpp makes.
if(NOT TARGET hostwait_tool_core)
  return()
endif()

find_package(nlohmann_json REQUIRED)

add_library(hostwait_record_builder STATIC ${PROJECT_SOURCE_DIR}/tests/support/record_builder.cpp)
target_include_directories(hostwait_record_builder PUBLIC ${PROJECT_SOURCE_DIR}/tests
                                                          ${PROJECT_SOURCE_DIR}/include)
target_link_libraries(hostwait_record_builder PRIVATE hostwait_warnings PUBLIC hostwait_sanitizers)

hostwait_add_catch_test(
  NAME tools.reader SOURCES ${CMAKE_CURRENT_LIST_DIR}/tools_reader_test.cpp
  LIBRARIES hostwait_record_builder hostwait_record_reader)

hostwait_add_catch_test(
  NAME tools.findings
  SOURCES ${CMAKE_CURRENT_LIST_DIR}/tools_findings_test.cpp
  LIBRARIES hostwait_record_builder hostwait_report)

hostwait_add_catch_test(
  NAME tools.report
  SOURCES ${CMAKE_CURRENT_LIST_DIR}/tools_report_test.cpp
  LIBRARIES hostwait_record_builder hostwait_report nlohmann_json::nlohmann_json)

hostwait_add_catch_test(
  NAME tools.views
  SOURCES ${CMAKE_CURRENT_LIST_DIR}/tools_views_test.cpp
  LIBRARIES hostwait_record_builder hostwait_report nlohmann_json::nlohmann_json)

hostwait_add_catch_test(
  NAME tools.causes
  SOURCES ${CMAKE_CURRENT_LIST_DIR}/tools_causes_test.cpp
  LIBRARIES hostwait_record_builder hostwait_report)

hostwait_add_catch_test(
  NAME tools.relations
  SOURCES ${CMAKE_CURRENT_LIST_DIR}/tools_relations_test.cpp
  LIBRARIES hostwait_record_builder hostwait_report nlohmann_json::nlohmann_json)

# Looks its own functions up: needs its debug information whatever the build type.
hostwait_add_catch_test(
  NAME tools.symbols
  SOURCES ${CMAKE_CURRENT_LIST_DIR}/tools_symbols_test.cpp ${CMAKE_CURRENT_LIST_DIR}/tools_marked.cpp
  LIBRARIES hostwait_report ${CMAKE_DL_LIBS})
set_source_files_properties(${CMAKE_CURRENT_LIST_DIR}/tools_marked.cpp PROPERTIES COMPILE_OPTIONS
                                                                                  "-g;-O1")

hostwait_add_catch_test(
  NAME tools.options
  SOURCES ${CMAKE_CURRENT_LIST_DIR}/tools_options_test.cpp
          ${PROJECT_SOURCE_DIR}/shim/options.cpp ${PROJECT_SOURCE_DIR}/shim/policy.cpp
  LIBRARIES hostwait_tool_core)
target_include_directories(test_tools_options PRIVATE ${PROJECT_SOURCE_DIR}/shim)

hostwait_add_catch_test(
  NAME tools.folders
  SOURCES ${CMAKE_CURRENT_LIST_DIR}/tools_folders_test.cpp
  LIBRARIES hostwait_record_builder hostwait_tool_core)

# Writes sample records for the tests of the whole program and for the fuzzer's corpus.
add_executable(hostwait_make_records ${CMAKE_CURRENT_LIST_DIR}/tools_make_records.cpp)
target_link_libraries(hostwait_make_records PRIVATE hostwait_record_builder hostwait_warnings)
set_target_properties(hostwait_make_records PROPERTIES RUNTIME_OUTPUT_DIRECTORY
                                                       ${PROJECT_BINARY_DIR}/tests)
