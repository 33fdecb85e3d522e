# SPDX-License-Identifier: Apache-2.0
# Copyright The hostwait authors
# The table of driver calls: completeness, rules, measured rows, documentation.
find_package(Python3 REQUIRED COMPONENTS Interpreter)
set(hostwait_measured_table ${PROJECT_SOURCE_DIR}/tests/sim/data/blocking-h200-cuda13.0-driver580.csv)

hostwait_add_catch_test(NAME table.rules SOURCES table_test.cpp table_roles_test.cpp
                        LIBRARIES hostwait_shim_core)
find_package(nlohmann_json QUIET)
if(nlohmann_json_FOUND)
  hostwait_add_catch_test(NAME table.captures SOURCES table_captures_test.cpp LIBRARIES
                          hostwait_shim_core nlohmann_json::nlohmann_json)
  hostwait_add_catch_test(NAME table.batches SOURCES table_batches_test.cpp LIBRARIES
                          hostwait_shim_core nlohmann_json::nlohmann_json)
  target_include_directories(test_table_batches PRIVATE ${PROJECT_SOURCE_DIR}/tools)
  foreach(part captures batches)
    target_compile_definitions(
      test_table_${part}
      PRIVATE
        HOSTWAIT_PROBE_JSON="${PROJECT_SOURCE_DIR}/docs/measurements/2026-11-30-h200-probe.json")
  endforeach()
else()
  message(STATUS "table.captures and table.batches are left out: no nlohmann_json to read the stored probe")
endif()
hostwait_add_catch_test(NAME table.profile SOURCES table_profile_test.cpp LIBRARIES
                        hostwait_shim_core)

add_library(hostwait_table_experiments STATIC table_experiments.cpp)
target_include_directories(hostwait_table_experiments PUBLIC ${PROJECT_SOURCE_DIR}/tools)
target_link_libraries(hostwait_table_experiments PUBLIC hostwait_shim_core
                                                 PRIVATE hostwait_warnings)

hostwait_add_catch_test(NAME table.mutation SOURCES table_mutation.cpp LIBRARIES
                        hostwait_table_experiments)
target_compile_definitions(test_table_mutation
                           PRIVATE HOSTWAIT_MEASURED_TABLE="${hostwait_measured_table}")

add_executable(table_verdicts table_verdicts.cpp)
target_link_libraries(table_verdicts PRIVATE hostwait_table_experiments hostwait_warnings)
set_target_properties(table_verdicts PROPERTIES RUNTIME_OUTPUT_DIRECTORY
                                                ${PROJECT_BINARY_DIR}/tests)
add_test(NAME table.verdicts
         COMMAND table_verdicts ${hostwait_measured_table} --rows
                 ${PROJECT_SOURCE_DIR}/scripts/data/measured-rows-h200.txt)

add_test(NAME table.complete COMMAND Python3::Interpreter
                                     ${PROJECT_SOURCE_DIR}/scripts/check_table.py)
add_test(NAME table.doc_fresh
         COMMAND Python3::Interpreter ${PROJECT_SOURCE_DIR}/scripts/generate_calls_doc.py --check)
set_tests_properties(table.verdicts table.complete table.doc_fresh PROPERTIES TIMEOUT 60)
