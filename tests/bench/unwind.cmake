# SPDX-License-Identifier: Apache-2.0
# Copyright The hostwait authors
# Our walk beside libgcc's and, where it is installed, libunwind's.
add_executable(hostwait_bench_unwind unwind_bench.cpp
                                     ${PROJECT_SOURCE_DIR}/tests/unit/record_resolve_double.cpp)
target_link_libraries(hostwait_bench_unwind PRIVATE hostwait_shim_core hostwait_warnings
                                                    benchmark::benchmark Threads::Threads
                                                    ${CMAKE_DL_LIBS})
# here() reads the saved frame pointer of its own frame.
target_compile_options(hostwait_bench_unwind PRIVATE -fno-omit-frame-pointer)
find_library(hostwait_libunwind NAMES unwind libunwind.so.8)
if(hostwait_libunwind)
  target_link_libraries(hostwait_bench_unwind PRIVATE ${hostwait_libunwind})
  target_compile_definitions(hostwait_bench_unwind PRIVATE HOSTWAIT_BENCH_LIBUNWIND)
endif()
