// SPDX-License-Identifier: Apache-2.0
// Copyright The hostwait authors
// Rows of type `state`: captures and the profiler range.
#include <cuda.h>

#include "entry.hpp"

namespace hostwait::entry {

void note_state(row_id row, const call_facts& facts, int result) noexcept {
  switch (row) {
    case row_cuStreamBeginCapture:
    case row_cuStreamBeginCapture_ptsz:
    case row_cuStreamBeginCapture_v2:
    case row_cuStreamBeginCapture_v2_ptsz:
    case row_cuStreamBeginCaptureToGraph:
    case row_cuStreamBeginCaptureToGraph_ptsz:
      if (result == CUDA_SUCCESS)
        state::capture_began(state::capture_key(facts.stream, facts.per_thread));
      break;
    case row_cuStreamEndCapture:
    case row_cuStreamEndCapture_ptsz: {
      // An invalidated capture ends with an error; it is over all the same. An end on a stream
      // that captures nothing changes nothing.
      const std::uint64_t key = state::capture_key(facts.stream, facts.per_thread);
      if (state::capturing(key)) state::capture_ended(key);
      break;
    }
    case row_cuProfilerStart:
      state::profiler_range(true);
      break;
    case row_cuProfilerStop:
      state::profiler_range(false);
      break;
    default:
      break;  // modes of waiting and of captures: seen, nothing to keep
  }
}

}  // namespace hostwait::entry
