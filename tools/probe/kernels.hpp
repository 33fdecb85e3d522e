// SPDX-License-Identifier: Apache-2.0
// Copyright The hostwait authors
// Embedded PTX, compiled by the driver itself.
#pragma once

namespace hostwait::probe {

// Entries `spin(u64 ns, u64 flags)` and `tiny()`. The spin ends by itself: after `ns` of the global
// timer, and after a fixed number of turns whatever the timer says. Where `flags` is not null it
// writes 1 to the first word there when it starts and to the second when it ends.
extern const char* const spin_ptx;

// Small modules for first-use experiments, one entry each: `plain`, `local_stack` (64 KiB of local
// memory per thread, more than the default stack), `printing` (one character to the printf buffer);
// `plain` comes with a variable `cell`.
extern const char* const plain_ptx;
extern const char* const local_stack_ptx;
extern const char* const printing_ptx;

}  // namespace hostwait::probe
