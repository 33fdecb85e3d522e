# SPDX-License-Identifier: Apache-2.0
# Copyright The hostwait authors
set(hostwait_unwind_sources unwind_test.cpp unwind_support.cpp unwind_optimized.cpp
                            unwind_framed.cpp record_resolve_double.cpp)
set_source_files_properties(unwind_optimized.cpp PROPERTIES COMPILE_OPTIONS
                                                            "-O3;-fomit-frame-pointer")
set_source_files_properties(unwind_framed.cpp PROPERTIES COMPILE_OPTIONS
                                                         "-O2;-fno-omit-frame-pointer")
hostwait_add_catch_test(NAME unwind.stacks SOURCES ${hostwait_unwind_sources}
                        LIBRARIES hostwait_shim_core ${CMAKE_DL_LIBS})
# The same as on a glibc older than 2.35, which has no _dl_find_object.
hostwait_add_catch_test(NAME unwind.old_libc SOURCES ${hostwait_unwind_sources}
                        LIBRARIES hostwait_shim_core ${CMAKE_DL_LIBS})
target_compile_definitions(test_unwind_old_libc PRIVATE HOSTWAIT_TEST_OLD_LIBC)

# The libraries unwind_test_a and unwind_test_b are in record.cmake.
foreach(test stacks old_libc)
  # Amid lazy binding the loader keeps its frame in rbx, and our walk ends there: not compared.
  target_link_options(test_unwind_${test} PRIVATE -Wl,-z,now)
  target_compile_definitions(test_unwind_${test}
                             PRIVATE HOSTWAIT_TEST_LIBRARIES="${PROJECT_BINARY_DIR}/tests/unwind")
  add_dependencies(test_unwind_${test} unwind_test_a unwind_test_b)
endforeach()
