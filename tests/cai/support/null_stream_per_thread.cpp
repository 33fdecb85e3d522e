// SPDX-License-Identifier: Apache-2.0
// Copyright The hostwait authors
// The null stream as a translation unit sees it that was compiled for per-thread default streams.
#define CUDA_API_PER_THREAD_DEFAULT_STREAM
#include <hostwait/cai.h>

uint64_t null_stream_per_thread() {
  return hostwait_cai_stream_of(nullptr).value;
}
