# SPDX-License-Identifier: Apache-2.0
# Copyright The hostwait authors
# The cost of an intercepted call, and of starting a process.
add_executable(hostwait_bench_calls calls.cpp latency.cpp)
target_link_libraries(hostwait_bench_calls PRIVATE hostwait::api hostwait_cuda_headers
                                                   hostwait_warnings benchmark::benchmark
                                                   Threads::Threads ${CMAKE_DL_LIBS})
target_compile_options(hostwait_bench_calls PRIVATE -fno-omit-frame-pointer
                                                    -fno-optimize-sibling-calls)
add_executable(hostwait_bench_startup startup.cpp)
target_link_libraries(hostwait_bench_startup PRIVATE hostwait_warnings)
