# SPDX-License-Identifier: Apache-2.0
# Copyright The hostwait authors
foreach(part threads process limits modules)
  hostwait_add_catch_test(
    NAME record.${part} SOURCES record_${part}_test.cpp record_resolve_double.cpp
    LIBRARIES hostwait_shim_core ${CMAKE_DL_LIBS})
endforeach()

# Three libraries of one layout: the loader tends to put the next one where the last one was.
foreach(which a b driver)
  add_library(unwind_test_${which} MODULE unwind_library.cpp)
  set_target_properties(unwind_test_${which} PROPERTIES LIBRARY_OUTPUT_DIRECTORY
                                                        ${PROJECT_BINARY_DIR}/tests/unwind)
  target_compile_definitions(unwind_test_${which} PRIVATE FRAME_BYTES=512)
  target_link_options(unwind_test_${which} PRIVATE -Wl,--build-id=sha1)
endforeach()
# Another frame size in the second one; the third one passes for the driver.
target_compile_definitions(unwind_test_b PRIVATE FRAME_MORE=256)
target_link_options(unwind_test_driver PRIVATE -Wl,-soname,libcuda.so.1)
target_compile_definitions(
  test_record_modules PRIVATE HOSTWAIT_TEST_LIBRARIES="${PROJECT_BINARY_DIR}/tests/unwind")
add_dependencies(test_record_modules unwind_test_a unwind_test_b unwind_test_driver)
