// SPDX-License-Identifier: Apache-2.0
// Copyright The hostwait authors
// The driver as a program sees it (dlsym: our wrapper under the preload) and as it is (the symbol
// table of libcuda read directly), side by side in one process.
#pragma once

#include <cuda.h>

#include <cstdint>

namespace hostwait::bench {

// By dlsym: what the program calls.
void* handed_out(const char* symbol);
// Out of libcuda's own symbol table: what the driver has. Null where it is not found.
void* drivers_own(const char* symbol);

using stream_call = CUresult (*)(CUstream);

// Initializes the driver and the primary context of device 0 once; exits with 77 without one.
void start_driver();
CUstream idle_stream();  // non-blocking, nothing was ever enqueued on it

std::uint64_t now_ns();

// Calls `call` through `depth` frames that the compiler cannot merge.
CUresult call_at_depth(stream_call call, CUstream stream, int depth);

// Latencies of `calls` recorded calls: percentiles in nanoseconds. Printed by --latency.
int print_latencies(const char* symbol, int calls);

}  // namespace hostwait::bench
