// SPDX-License-Identifier: Apache-2.0
// Copyright The hostwait authors
// Runs one case of a vector through the C core against the recording driver.
#pragma once

#include "vector_input.hpp"

namespace cai_test {

// Empty: as expected. Otherwise what differs. Throws not_expressible.
std::string run_case(const json& world_description, const json& vector, const json& test_case);

}  // namespace cai_test
