// SPDX-License-Identifier: Apache-2.0
// Copyright The hostwait authors
// Handles of the double of shim/resolve*.
#pragma once

namespace hostwait::test {

void next_loader_generation();

}  // namespace hostwait::test
