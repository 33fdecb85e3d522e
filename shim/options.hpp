// SPDX-License-Identifier: Apache-2.0
// Copyright The hostwait authors
// HOSTWAIT_OPTIONS. Own parser: the shim may link neither strtol (renamed by newer C libraries) nor
// anything beyond libc's oldest symbols.
#pragma once

#include <cstddef>
#include <cstdint>

#include "policy.hpp"

namespace hostwait {

struct options {
  policy::action_set level = policy::all_log;
  std::uint32_t threshold_us = 1000;
  std::uint32_t own_cost_us = 120, own_cost_gb_per_s = 1;
  bool link_route = true, strip_deepbind = true;
  bool refuse_depends = false;
  std::uint32_t stacks = 48, pystacks = 32;
  bool capture_range_profiler = false;
  std::uint64_t window_begin_ms = 0, window_end_ms = 0;  // both 0: no window; end 0: open
  std::uint32_t armed = HOSTWAIT_ALL;                    // kinds that are watched at all
  bool gap = false;
  std::uint32_t max_sites = 20000;
  bool help = false;
  char output[4096] = {};
  char range[512] = {}, threads[512] = {};
  char profile[1024] = {};
};

// Parses `text` into `out` (which keeps what came before an error). Returns true, or false with
// one line in `error`: option, value, remedy.
bool parse_options(const char* text, options& out, char* error, std::size_t error_bytes) noexcept;

// The list that help=1 prints. Returns the bytes written.
std::size_t describe_options(char* out, std::size_t room) noexcept;

}  // namespace hostwait
