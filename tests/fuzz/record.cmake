# SPDX-License-Identifier: Apache-2.0
# Copyright The hostwait authors
# The record reader and the report made from it, with the reader's own sources instrumented.
if(NOT TARGET hostwait_report)
  return()
endif()
get_target_property(hostwait_fuzzed_sources hostwait_report SOURCES)
list(FILTER hostwait_fuzzed_sources EXCLUDE REGEX "dwarf|json")
list(TRANSFORM hostwait_fuzzed_sources PREPEND ${PROJECT_SOURCE_DIR}/tools/)
find_package(fmt REQUIRED)
add_executable(
  fuzz_record ${CMAKE_CURRENT_LIST_DIR}/record_fuzz.cpp ${hostwait_fuzzed_sources}
              ${PROJECT_SOURCE_DIR}/tools/record/names.cpp
              ${PROJECT_SOURCE_DIR}/tools/record/reader.cpp)
target_include_directories(fuzz_record PRIVATE ${PROJECT_SOURCE_DIR}/tools
                                               ${PROJECT_SOURCE_DIR}/include)
target_link_libraries(fuzz_record PRIVATE hostwait_warnings fmt::fmt-header-only)
target_compile_options(fuzz_record PRIVATE -fsanitize=fuzzer,address,undefined
                                           -fno-sanitize-recover=undefined)
target_link_options(fuzz_record PRIVATE -fsanitize=fuzzer,address,undefined)

# Seeds: scripts/fuzz.sh reads build-fuzz/corpus/<target>.
add_custom_command(
  TARGET fuzz_record
  POST_BUILD
  COMMAND ${CMAKE_COMMAND} -E make_directory ${PROJECT_BINARY_DIR}/corpus/fuzz_record
  COMMAND hostwait_make_records corpus ${PROJECT_BINARY_DIR}/corpus/fuzz_record)
add_dependencies(fuzz_record hostwait_make_records)
