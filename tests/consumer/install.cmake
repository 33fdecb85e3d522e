# SPDX-License-Identifier: Apache-2.0
# Copyright The hostwait authors
# Installs into a first folder, then moves the tree to where the other tests use it.
file(REMOVE_RECURSE ${TREE} ${TREE}.made)
execute_process(COMMAND ${CMAKE_COMMAND} --install ${BUILD} --prefix ${TREE}.made
                RESULT_VARIABLE status OUTPUT_QUIET)
if(NOT status EQUAL 0)
  message(FATAL_ERROR "cmake --install failed")
endif()
file(RENAME ${TREE}.made ${TREE})

foreach(file include/hostwait/hostwait.h include/hostwait/record.h include/hostwait/version.h
             ${LIBDIR}/cmake/hostwait/hostwait-config.cmake ${LIBDIR}/pkgconfig/hostwait.pc
             ${LIBDIR}/hostwait/libhostwait.so)
  if(NOT EXISTS ${TREE}/${file})
    message(SEND_ERROR "${file} was not installed")
  endif()
endforeach()

file(GLOB_RECURSE texts ${TREE}/*.cmake ${TREE}/*.pc)
foreach(text IN LISTS texts)
  file(READ ${text} content)
  foreach(place ${BUILD} ${SOURCE} ${TREE})
    string(FIND "${content}" "${place}" at)
    if(NOT at EQUAL -1)
      message(SEND_ERROR "${text} names ${place}")
    endif()
  endforeach()
endforeach()
