# SPDX-License-Identifier: Apache-2.0
# Copyright The hostwait authors
# Compiles every public header alone, twice included, in each language mode that it promises.
file(MAKE_DIRECTORY ${WORK})
set(bad 0)
set(count 0)

macro(compile_header header compiler extension standard)
  string(MAKE_C_IDENTIFIER "${header}_${standard}_${ARGN}" name)
  set(source ${WORK}/${name}.${extension})
  file(WRITE ${source} "#include <${header}>\n#include <${header}>\ntypedef int not_empty;\n")
  execute_process(
    COMMAND ${compiler} -std=${standard} -Wall -Wextra -pedantic -Werror ${ARGN} -I${INCLUDE}
            -isystem ${CUDA_INCLUDE} ${python_flags} -fsyntax-only ${source}
    RESULT_VARIABLE status
    ERROR_VARIABLE errors)
  math(EXPR count "${count} + 1")
  if(NOT status EQUAL 0)
    message("${header} as ${standard} ${ARGN}:\n${errors}")
    set(bad 1)
  endif()
endmacro()

foreach(header IN LISTS HEADERS)
  set(python_flags)
  if(header MATCHES "(nanobind|pybind11)")
    # Glue for a binding library that is none of our dependencies.
    message("${header}: left out, needs a binding library")
    continue()
  endif()
  if(header MATCHES "python")
    # The Python glue includes Python.h; without the interpreter's headers it is not for this machine.
    execute_process(
      COMMAND python3 -c "import sysconfig; print(sysconfig.get_paths()['include'])"
      OUTPUT_VARIABLE python_include
      OUTPUT_STRIP_TRAILING_WHITESPACE)
    if(NOT EXISTS ${python_include}/Python.h)
      message("${header}: left out, no Python.h on this machine")
      continue()
    endif()
    set(python_flags -isystem ${python_include})
  endif()
  if(header MATCHES "\\.h$")
    foreach(standard c99 c11)
      compile_header(${header} ${C_COMPILER} c ${standard} -fPIE)
      compile_header(${header} ${C_COMPILER} c ${standard} -fno-pie)
    endforeach()
  endif()
  compile_header(${header} ${CXX_COMPILER} cpp c++20 -fPIE)
  compile_header(${header} ${CXX_COMPILER} cpp c++20 -fno-pie)
endforeach()
if(bad OR count EQUAL 0)
  message(FATAL_ERROR "a public header does not stand alone")
endif()
message("${count} compilations")
