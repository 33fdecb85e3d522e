// SPDX-License-Identifier: Apache-2.0
// Copyright The hostwait authors
// What a kernel does to a stream, for launches and for graph nodes.
#pragma once

#include "state.hpp"

namespace hostwait::sim {

// Parameters are read now, as the real driver does.
CUresult kernel_work(CUfunction handle, void** parameters, void** extra, work* out);

}  // namespace hostwait::sim
