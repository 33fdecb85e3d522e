# SPDX-License-Identifier: Apache-2.0
# Copyright The hostwait authors
# Pausing, from inside and from outside, threads= and window=: one program, run with other options.
if(TARGET hostwait_sim)
  set(control_tool)
  if(TARGET hostwait_tool)
    set(control_tool HOSTWAIT_TOOL=$<TARGET_FILE:hostwait_tool>)
  endif()
  hostwait_preload_test(NAME preload.control SOURCES control_test.cpp ENVIRONMENT ${control_tool})
  # The options are read at the start of a process. 1,2: a window of the second after boot.
  hostwait_preload_part(preload.control threads threads=loader*,other)
  hostwait_preload_part(preload.control future window=999999999999998,999999999999999)
  hostwait_preload_part(preload.control past window=1,2)
  hostwait_preload_part(preload.control open window=1,0)
endif()
