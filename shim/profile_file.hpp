// SPDX-License-Identifier: Apache-2.0
// Copyright The hostwait authors
// The verdict profile named by the option profile=FILE.
#pragma once

#include <cstddef>

#include "profile.hpp"

namespace hostwait {

// Reads the file at start, once. False, with one line in `error`, where it cannot be used.
bool load_profile(const char* path, char* error, std::size_t error_bytes) noexcept;

// Null without a profile.
const verdict_profile* loaded_profile() noexcept;

}  // namespace hostwait
