// SPDX-License-Identifier: Apache-2.0
// Copyright The hostwait authors
// The file behind the option profile=FILE, looked at before a program starts with it.
#pragma once

#include <string>

namespace hostwait {

// Throws failure (2) with one line where the file cannot be read, or is not what
// `hostwait probe --save` writes. `source` names where the option stood.
void check_profile(const std::string& source, const std::string& path);

}  // namespace hostwait
