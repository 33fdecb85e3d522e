# SPDX-License-Identifier: Apache-2.0
# Copyright The hostwait authors
# Many threads, deep stacks, many calls: as it is, and as programs built with a sanitizer, whose
# runtime comes first, as its authors ask. HOSTWAIT_STRESS_WAITS makes it longer.
if(NOT TARGET hostwait_sim OR HOSTWAIT_SANITIZE)
  return()
endif()
set(stresses plain)
foreach(kind asan tsan)
  execute_process(
    COMMAND ${CMAKE_CXX_COMPILER} -print-file-name=lib${kind}.so
    OUTPUT_VARIABLE stress_runtime_${kind}
    OUTPUT_STRIP_TRAILING_WHITESPACE)
  # Sanitizers do not run under an emulator.
  if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU" AND EXISTS "${stress_runtime_${kind}}"
     AND NOT CMAKE_CROSSCOMPILING)
    list(APPEND stresses ${kind})
  endif()
endforeach()
set(stress_options_asan -fsanitize=address)
set(stress_options_tsan -fsanitize=thread)
foreach(kind ${stresses})
  add_executable(hostwait_stress_${kind} stress.cpp ${PROJECT_SOURCE_DIR}/tools/record/reader.cpp
                                         ${PROJECT_SOURCE_DIR}/tools/record/names.cpp)
  target_compile_options(hostwait_stress_${kind} PRIVATE ${stress_options_${kind}})
  target_link_options(hostwait_stress_${kind} PRIVATE ${stress_options_${kind}})
  target_include_directories(hostwait_stress_${kind} PRIVATE ${PROJECT_SOURCE_DIR}/tests
                                                             ${PROJECT_SOURCE_DIR}/tools)
  target_link_libraries(
    hostwait_stress_${kind} PRIVATE hostwait_api hostwait_cuda_headers hostwait_warnings
                                    Threads::Threads ${CMAKE_DL_LIBS})
  add_dependencies(hostwait_stress_${kind} hostwait_sim hostwait_shim)
  add_test(NAME preload.stress_${kind} COMMAND hostwait_stress_${kind})
  set(preload $<TARGET_FILE:hostwait_shim>)
  if(NOT kind STREQUAL "plain")
    set(preload "${stress_runtime_${kind}}:${preload}")
  endif()
  set_tests_properties(
    preload.stress_${kind}
    PROPERTIES
      TIMEOUT 300
      FIXTURES_REQUIRED hostwait_test_records
      ENVIRONMENT
      "LD_PRELOAD=${preload};LD_LIBRARY_PATH=${PROJECT_BINARY_DIR}/lib/sim;HOSTWAIT_OPTIONS=output=${HOSTWAIT_TEST_RECORDS}"
  )
endforeach()
