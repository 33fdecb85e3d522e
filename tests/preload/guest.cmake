# SPDX-License-Identifier: Apache-2.0
# Copyright The hostwait authors
# Programs that know nothing of hostwait and must not notice it, run by tests in Python with and
# without it: processes, terminals, threads, storage, languages, sanitizers and allocators.
if(NOT TARGET hostwait_tool OR NOT TARGET hostwait_sim)
  return()
endif()
find_package(Python3 REQUIRED COMPONENTS Interpreter)
set(guest_folder ${CMAKE_CURRENT_LIST_DIR}/guest)
set(guest_bin ${PROJECT_BINARY_DIR}/tests/guest)

# guest_program(name source…): an ordinary executable, without any sanitizer of this build.
function(guest_program name)
  list(TRANSFORM ARGN PREPEND ${guest_folder}/)
  add_executable(guest_${name} ${ARGN})
  target_compile_definitions(guest_${name} PRIVATE _GNU_SOURCE)
  target_link_libraries(guest_${name} PRIVATE hostwait_warnings hostwait::api Threads::Threads
                                              ${CMAKE_DL_LIBS})
  set_target_properties(guest_${name} PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${guest_bin})
endfunction()

guest_program(processes processes.c)
guest_program(throws throws.cpp)
guest_program(threads threads.cpp)
guest_program(jumps jumps.cpp)
guest_program(storage storage.c)

# The stand-in of jumps.cpp; it must let C++ exceptions through.
add_library(guest_driver SHARED ${guest_folder}/driver.c)
target_compile_options(guest_driver PRIVATE -fexceptions)
target_link_libraries(guest_driver PRIVATE hostwait_warnings)
target_link_options(guest_driver PRIVATE -Wl,-soname,libcuda.so.1)
set_target_properties(
  guest_driver PROPERTIES PREFIX "" OUTPUT_NAME libcuda.so.1 SUFFIX "" NO_SONAME ON
                          LIBRARY_OUTPUT_DIRECTORY ${guest_bin}/driver)

# guest_test(name [K=V …]): guest/<name>_test.py. The shim under test is the true one.
function(guest_test name)
  add_test(NAME guest.${name} COMMAND Python3::Interpreter -B ${guest_folder}/${name}_test.py)
  set_tests_properties(
    guest.${name}
    PROPERTIES
      LABELS
      nosanitize
      SKIP_RETURN_CODE
      77
      TIMEOUT
      300
      ENVIRONMENT
      "HOSTWAIT_TOOL=$<TARGET_FILE:hostwait_tool>;HOSTWAIT_LIBDIR=$<TARGET_FILE_DIR:hostwait_shim>;HOSTWAIT_MAKE_RECORDS=$<TARGET_FILE:hostwait_make_records>;HOSTWAIT_SCHEMAS=${PROJECT_SOURCE_DIR}/docs/schemas;HOSTWAIT_GUEST_BIN=${guest_bin};HOSTWAIT_GUEST_SOURCES=${guest_folder};HOSTWAIT_CC=${CMAKE_C_COMPILER};HOSTWAIT_CXX=${CMAKE_CXX_COMPILER};HOSTWAIT_INCLUDE=${PROJECT_SOURCE_DIR}/include;LD_LIBRARY_PATH=$<TARGET_FILE_DIR:hostwait_sim>;${ARGN}"
  )
endfunction()

guest_test(processes)
guest_test(terminal)
guest_test(storage)
guest_test(languages)
guest_test(python)
guest_test(sanitizers)
guest_test(allocators)
guest_test(threads HOSTWAIT_GUEST_DRIVER=${guest_bin}/driver)
