# SPDX-License-Identifier: Apache-2.0
# Copyright The hostwait authors
# Python stacks, NVTX ranges and new sites; loaded by bench_python.py.
add_library(hostwait_bench_stacks SHARED stacks.cpp)
target_link_libraries(hostwait_bench_stacks PRIVATE hostwait::api hostwait_cuda_headers
                                                    hostwait_warnings ${CMAKE_DL_LIBS})
target_compile_options(hostwait_bench_stacks PRIVATE -fno-optimize-sibling-calls
                                                     -fvisibility=hidden)
if(HOSTWAIT_NVTX_INCLUDE)
  target_include_directories(hostwait_bench_stacks SYSTEM PRIVATE ${HOSTWAIT_NVTX_INCLUDE})
  target_compile_definitions(hostwait_bench_stacks PRIVATE HOSTWAIT_BENCH_NVTX)
endif()
