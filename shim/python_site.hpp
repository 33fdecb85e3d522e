// SPDX-License-Identifier: Apache-2.0
// Copyright The hostwait authors
// From a Python stack to its frame in the record.
#pragma once

#include <cstdint>

#include "sys.hpp"

namespace hostwait::python {

// The record's frame id of the calling thread's Python stack, 0 for none; record::not_now where
// another thread is in the way. A stack seen before costs
// the walk and one look-up; texts are copied into the record at first sight.
HOSTWAIT_HOT std::uint32_t record_stack(unsigned limit) noexcept;

}  // namespace hostwait::python
