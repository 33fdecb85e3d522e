# SPDX-License-Identifier: Apache-2.0
# Copyright The hostwait authors
# Pausing, from inside and from outside, threads= and window=: one program, run with other options.
if(TARGET hostwait_sim)
  set(control_environment LD_PRELOAD=$<TARGET_FILE:hostwait_shim>
                          LD_LIBRARY_PATH=$<TARGET_FILE_DIR:hostwait_sim>
                          ASAN_OPTIONS=verify_asan_link_order=0)
  if(TARGET hostwait_tool)
    list(APPEND control_environment HOSTWAIT_TOOL=$<TARGET_FILE:hostwait_tool>)
  endif()
  hostwait_add_catch_test(
    NAME preload.control
    SOURCES control_test.cpp
    LIBRARIES hostwait_api hostwait_cuda_headers hostwait_record_reader
    ENVIRONMENT ${control_environment})
  add_dependencies(test_preload_control hostwait_sim hostwait_shim)
  # The options are read at the start of a process. 1,2: a window of the second after boot.
  foreach(part threads future past open)
    set(option_threads "threads=loader*,other")
    set(option_future "window=999999999999998,999999999999999")
    set(option_past "window=1,2")
    set(option_open "window=1,0")
    add_test(NAME preload.control_${part} COMMAND test_preload_control "[${part}]")
    set_tests_properties(
      preload.control_${part}
      PROPERTIES TIMEOUT 300 ENVIRONMENT
                 "${control_environment};HOSTWAIT_OPTIONS=${option_${part}}")
  endforeach()
endif()
