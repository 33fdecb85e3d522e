# SPDX-License-Identifier: Apache-2.0
# Copyright The hostwait authors
# Interface targets shared by every part: warnings, sanitizers, CUDA headers. Link them PRIVATE.

add_library(hostwait_warnings INTERFACE)
target_compile_options(
  hostwait_warnings
  INTERFACE -Wall -Wextra -Wpointer-arith -Wno-missing-field-initializers
            $<$<BOOL:${HOSTWAIT_WERROR}>:-Werror>)

add_library(hostwait_sanitizers INTERFACE)
if(HOSTWAIT_SANITIZE)
  target_compile_options(hostwait_sanitizers INTERFACE -fsanitize=${HOSTWAIT_SANITIZE}
                                                       -fno-omit-frame-pointer
                                                       -fno-sanitize-recover=undefined)
  target_link_options(hostwait_sanitizers INTERFACE -fsanitize=${HOSTWAIT_SANITIZE})
endif()

# cuda.h and cudaTypedefs.h: the toolkit's, or the pinned PyPI package that scripts/ unpacks and
# names in HOSTWAIT_CUDA_INCLUDE. Nothing here links CUDA.
find_path(
  HOSTWAIT_CUDA_INCLUDE cudaTypedefs.h
  HINTS ENV CUDA_HOME ENV CUDA_PATH /usr/local/cuda
  PATH_SUFFIXES include targets/x86_64-linux/include)
if(NOT HOSTWAIT_CUDA_INCLUDE)
  message(FATAL_ERROR "CUDA headers not found: set HOSTWAIT_CUDA_INCLUDE to the folder of cuda.h \
(CUDA 13.0 toolkit, or PyPI's nvidia-cuda-runtime==13.0.* and nvidia-cuda-profiler-api==13.0.*)")
endif()
add_library(hostwait_cuda_headers INTERFACE)
target_include_directories(hostwait_cuda_headers SYSTEM INTERFACE ${HOSTWAIT_CUDA_INCLUDE})
