// SPDX-License-Identifier: Apache-2.0
// Copyright The hostwait authors
// Records of running processes.
#pragma once

#include <cstdint>

#include "record/reader.hpp"

namespace hostwait {

// The record that the process has mapped, wherever it lies; else one of the live folders. Throws
// failure (2) where there is none.
record_file live_record(std::uint32_t pid);

// Of the running processes of this user the one that started last. Throws failure (2).
record_file newest_live_record();

}  // namespace hostwait
