# SPDX-License-Identifier: Apache-2.0
# Copyright The hostwait authors
# Costs of the exchange library; scripts/gpu_cai.sh runs it on a GPU.
if(TARGET hostwait_cai_static)
  add_executable(hostwait_cai_bench ${CMAKE_CURRENT_LIST_DIR}/cai_bench.cpp)
  target_link_libraries(hostwait_cai_bench PRIVATE hostwait::cai_static hostwait_cuda_headers
                                                   hostwait_warnings)
  target_include_directories(hostwait_cai_bench PRIVATE ${PROJECT_SOURCE_DIR}/tests)
endif()
