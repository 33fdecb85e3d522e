# SPDX-License-Identifier: Apache-2.0
# Copyright The hostwait authors
# Builds and runs the policy program with nothing but what pkg-config says of the install tree.
find_program(pkg_config NAMES pkg-config pkgconf)
if(NOT pkg_config)
  message(FATAL_ERROR "pkg-config is not installed")
endif()
set(ENV{PKG_CONFIG_PATH} ${TREE}/${LIBDIR}/pkgconfig)
file(MAKE_DIRECTORY ${WORK})

macro(ask result)
  execute_process(
    COMMAND ${pkg_config} ${ARGN}
    OUTPUT_VARIABLE ${result}
    OUTPUT_STRIP_TRAILING_WHITESPACE COMMAND_ERROR_IS_FATAL ANY)
  separate_arguments(${result} UNIX_COMMAND "${${result}}")
endmacro()

ask(version --modversion hostwait)
if(NOT version STREQUAL VERSION)
  message(FATAL_ERROR "pkg-config says version ${version}, not ${VERSION}")
endif()
ask(flags --cflags hostwait)
ask(libs --libs hostwait)
execute_process(COMMAND ${C_COMPILER} -std=c99 ${flags} ${SOURCE}/use_api.c -o ${WORK}/use_api
                        ${libs} COMMAND_ERROR_IS_FATAL ANY)
execute_process(COMMAND ${WORK}/use_api absent COMMAND_ERROR_IS_FATAL ANY)
if(EXISTS ${TREE}/${LIBDIR}/pkgconfig/hostwait-cai.pc)
  ask(libs --libs hostwait-cai)
  ask(flags --cflags hostwait-cai)
  execute_process(
    COMMAND ${C_COMPILER} -std=c99 ${flags} ${SOURCE}/project/use_cai.c -o ${WORK}/use_cai ${libs}
            -Wl,-rpath,${TREE}/${LIBDIR} COMMAND_ERROR_IS_FATAL ANY)
  execute_process(COMMAND ${WORK}/use_cai COMMAND_ERROR_IS_FATAL ANY)
endif()
