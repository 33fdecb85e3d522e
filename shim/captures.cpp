// SPDX-License-Identifier: Apache-2.0
// Copyright The hostwait authors
// Rows of type `state`: captures and the profiler range.
#include <cuda.h>

#include "entry.hpp"

namespace hostwait::entry {

void note_state(row_id row, const call_facts& facts, int result) noexcept {
  const rule_id rule = rows[row].rule;
  const std::uint64_t stream = state::capture_key(facts.stream, facts.per_thread);
  switch (rule) {
    case rule_id::capture_begin:
      if (result == CUDA_SUCCESS) state::capture_began(stream);
      break;
    case rule_id::capture_end:
      // An invalidated capture ends with an error; it is over all the same. An end on a stream
      // that captures nothing changes nothing.
      if (state::capturing(stream)) state::capture_ended(stream);
      break;
    case rule_id::profiler_start:
      state::profiler_range(true);
      break;
    case rule_id::profiler_stop:
      state::profiler_range(false);
      break;
    default:
      break;
  }
}

}  // namespace hostwait::entry
