# SPDX-License-Identifier: Apache-2.0
# Copyright The hostwait authors
# NVTX ranges under the preload, with nvtx3's own headers. Where they are not installed (PyPI's
# nvidia-nvtx has them, the CUDA runtime package has not) the test says so and is skipped.
find_path(HOSTWAIT_NVTX_INCLUDE nvtx3/nvToolsExt.h HINTS ${HOSTWAIT_CUDA_INCLUDE})
if(TARGET hostwait_sim AND HOSTWAIT_NVTX_INCLUDE)
  hostwait_preload_test(
    NAME preload.nvtx
    SOURCES nvtx_test.cpp
    LIBRARIES hostwait_record_reader ${CMAKE_DL_LIBS}
    ENVIRONMENT NVTX_INJECTION64_PATH=$<TARGET_FILE:hostwait_shim>)
  target_include_directories(test_preload_nvtx SYSTEM PRIVATE ${HOSTWAIT_NVTX_INCLUDE})
  target_include_directories(test_preload_nvtx PRIVATE ${PROJECT_SOURCE_DIR}/shim)
  foreach(copy a b)
    add_library(nvtx_plugin_${copy} MODULE nvtx_plugin.cpp)
    target_include_directories(nvtx_plugin_${copy} SYSTEM PRIVATE ${HOSTWAIT_NVTX_INCLUDE})
    target_compile_options(nvtx_plugin_${copy} PRIVATE -fvisibility=hidden)
    target_link_libraries(nvtx_plugin_${copy} PRIVATE ${CMAKE_DL_LIBS})
    set_target_properties(nvtx_plugin_${copy} PROPERTIES LIBRARY_OUTPUT_DIRECTORY
                                                         ${PROJECT_BINARY_DIR}/tests)
    add_dependencies(test_preload_nvtx nvtx_plugin_${copy})
  endforeach()
  target_compile_definitions(
    test_preload_nvtx PRIVATE NVTX_PLUGIN_A="$<TARGET_FILE:nvtx_plugin_a>"
                              NVTX_PLUGIN_B="$<TARGET_FILE:nvtx_plugin_b>")
elseif(TARGET hostwait_sim)
  add_test(NAME preload.nvtx COMMAND sh -c "echo 'skipped: nvtx3/nvToolsExt.h not found'; exit 77")
  set_tests_properties(preload.nvtx PROPERTIES SKIP_RETURN_CODE 77)
endif()
