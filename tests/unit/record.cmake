# SPDX-License-Identifier: Apache-2.0
# Copyright The hostwait authors
foreach(part threads process limits)
  hostwait_add_catch_test(
    NAME record.${part} SOURCES record_${part}_test.cpp record_resolve_double.cpp
    LIBRARIES hostwait_shim_core ${CMAKE_DL_LIBS})
endforeach()
