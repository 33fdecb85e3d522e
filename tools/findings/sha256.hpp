// SPDX-License-Identifier: Apache-2.0
// Copyright The hostwait authors
// SHA-256 (FIPS 180-4) for fingerprints. Own code: no library that hostwait uses has one, and
// sixteen hex digits do not justify a dependency on OpenSSL. Not for secrets.
#pragma once

#include <string>
#include <string_view>

namespace hostwait {

// 64 hex digits.
std::string sha256_hex(std::string_view message);

}  // namespace hostwait
