# SPDX-License-Identifier: Apache-2.0
# Copyright The hostwait authors
# The exchange library's validator, its sources instrumented.
get_target_property(hostwait_cai_fuzzed hostwait_cai_objects SOURCES)
list(TRANSFORM hostwait_cai_fuzzed PREPEND ${PROJECT_SOURCE_DIR}/cai/)
add_executable(fuzz_cai ${CMAKE_CURRENT_LIST_DIR}/cai_fuzz.cpp ${hostwait_cai_fuzzed})
target_compile_definitions(fuzz_cai PRIVATE HOSTWAIT_CAI_STATIC)
target_link_libraries(fuzz_cai PRIVATE hostwait_api hostwait_warnings Threads::Threads)
target_compile_options(fuzz_cai PRIVATE -fsanitize=fuzzer,address,undefined,integer
                                        -fno-sanitize=unsigned-integer-overflow
                                        -fno-sanitize=unsigned-shift-base
                                        -fno-sanitize-recover=all)
target_link_options(fuzz_cai PRIVATE -fsanitize=fuzzer,address,undefined)
