// SPDX-License-Identifier: Apache-2.0
// Copyright The hostwait authors
// Shape and strides of a description: counts, byte extents, contiguity, overlap.
#pragma once

#include "error.hpp"

namespace hostwait::cai {

// From desc's shape, itemsize, kind and (unless `implied`) strides: fills count, nbytes, lo, hi,
// the strides of C order where implied, and the layout flags. Everything is checked for overflow.
int finish_layout(hostwait_cai_desc* desc, bool implied, const error_sink& sink);

// Byte range of the elements; false on overflow. The description must have its count.
bool extent(const hostwait_cai_desc& desc, int64_t* lo, int64_t* hi);

}  // namespace hostwait::cai
