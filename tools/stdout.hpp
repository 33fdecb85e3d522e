// SPDX-License-Identifier: Apache-2.0
// Copyright The hostwait authors
#pragma once

#include <cstdio>
#include <string>

#include "failure.hpp"

namespace hostwait {

// Throws failure (2) where it cannot be written whole (a full disk, a closed pipe).
inline void print_stdout(const std::string& text, const char* what) {
  if (std::fwrite(text.data(), 1, text.size(), stdout) != text.size() || std::fflush(stdout) != 0)
    throw failure(exit_usage, std::string(what) + " cannot be written to stdout");
}

}  // namespace hostwait
