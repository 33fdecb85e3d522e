// SPDX-License-Identifier: Apache-2.0
// Copyright The hostwait authors
// C++ names as a person wants to read them.
#pragma once

#include <string>
#include <string_view>

namespace hostwait {

// The demangled name without template arguments, parameters, return type and ABI tags:
// "c10::cuda::CUDACachingAllocator::free_block". Names that are not mangled come back unchanged.
std::string readable_name(const char* symbol);

// The same work on a name that is demangled already.
std::string strip_signature(std::string_view demangled);

// At most four components, none of them anonymous, a lambda as the function that it stands in:
// "c10::cuda::…::free_block".
std::string shorten_name(const std::string& full);

}  // namespace hostwait
