# SPDX-License-Identifier: Apache-2.0
# Copyright The hostwait authors
# tools.foreign: children that no preload reaches, under the true library.
if(NOT TARGET hostwait_tool)
  return()
endif()
set(foreign_environment
    "HOSTWAIT_TOOL=$<TARGET_FILE:hostwait_tool>" "HOSTWAIT_LIBDIR=$<TARGET_FILE_DIR:hostwait_shim>"
    "HOSTWAIT_MAKE_RECORDS=" "HOSTWAIT_SCHEMAS=${PROJECT_SOURCE_DIR}/docs/schemas"
    "ASAN_OPTIONS=verify_asan_link_order=0")
set(foreign_source ${CMAKE_CURRENT_LIST_DIR}/foreign_program.c)
set(foreign_folder ${PROJECT_BINARY_DIR}/tests/foreign)
file(MAKE_DIRECTORY ${foreign_folder})
# foreign_program(KIND COMMAND…): a compiler of its own makes it.
function(foreign_program kind source)
  add_custom_command(OUTPUT ${foreign_folder}/${kind} DEPENDS ${source}
                     COMMAND ${ARGN} ${source} -o ${foreign_folder}/${kind} VERBATIM)
  string(TOUPPER ${kind} name)
  list(APPEND foreign_environment "HOSTWAIT_FOREIGN_${name}=${foreign_folder}/${kind}")
  list(APPEND foreign_programs ${foreign_folder}/${kind})
  set(foreign_environment ${foreign_environment} PARENT_SCOPE)
  set(foreign_programs ${foreign_programs} PARENT_SCOPE)
endfunction()
foreign_program(static ${foreign_source} ${CMAKE_C_COMPILER} -O1 -static)
find_program(HOSTWAIT_MUSL_GCC musl-gcc)
if(HOSTWAIT_MUSL_GCC)
  foreign_program(musl ${foreign_source} ${HOSTWAIT_MUSL_GCC} -O1 -D_GNU_SOURCE -DUSES_LOADER)
endif()
if(CMAKE_SYSTEM_PROCESSOR STREQUAL "x86_64")
  foreign_program(bits32 ${CMAKE_CURRENT_LIST_DIR}/foreign_bits32.c ${CMAKE_C_COMPILER} -m32 -O1
                  -nostdlib -static -fno-pic -no-pie)
endif()
add_custom_target(hostwait_foreign_programs ALL DEPENDS ${foreign_programs})
add_test(NAME tools.foreign COMMAND Python3::Interpreter -B
                                    ${CMAKE_CURRENT_LIST_DIR}/tool_foreign_test.py)
set_tests_properties(tools.foreign PROPERTIES SKIP_RETURN_CODE 77 TIMEOUT 300
                                            ENVIRONMENT "${foreign_environment}")
