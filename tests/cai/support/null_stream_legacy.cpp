// SPDX-License-Identifier: Apache-2.0
// Copyright The hostwait authors
// The null stream as a translation unit sees it that was compiled as usual.
#include <hostwait/cai.h>

uint64_t null_stream_legacy() {
  return hostwait_cai_stream_of(nullptr).value;
}
