// SPDX-License-Identifier: Apache-2.0
// Copyright The hostwait authors
// Each returns a return address inside itself.
#pragma once

#include <cstdint>

namespace marked {
std::uintptr_t plain();
std::uintptr_t outer();
std::uintptr_t in_lambda();
}  // namespace marked
