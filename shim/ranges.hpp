// SPDX-License-Identifier: Apache-2.0
// Copyright The hostwait authors
// Annotated ranges that are open: per thread (push and pop) and per process (start and end). Sites
// carry their path; the range option limits a level to them.
#pragma once

#include <cstddef>
#include <cstdint>

#include "sys.hpp"

namespace hostwait::ranges {

inline constexpr unsigned max_depth = 64;
inline constexpr unsigned name_bytes = 56;

// Ranges of one thread, newest last. Deeper ones are counted, not kept.
struct stack {
  struct range {
    std::uint64_t domain;  // 0: the default domain
    char name[name_bytes];
  };
  std::uint32_t depth;
  std::uint32_t beyond;  // pushes past max_depth
  // The record's number of the path, valid for this state of the stack and that record.
  std::uint32_t path, path_record;
  bool path_known;
  range open[max_depth];
};

// Level of the range (0 for the outermost), as NVTX returns it.
int push(std::uint64_t domain, const char* domain_name, const char* name) noexcept;
int pop(std::uint64_t domain) noexcept;

std::uint64_t start(const char* domain_name, const char* name) noexcept;
void end(std::uint64_t id) noexcept;

// The record's range number of what is open on this thread (or, where nothing is, in the process);
// 0 for nothing.
HOSTWAIT_HOT std::uint32_t current() noexcept;

// Whether a range open on this thread or in the process matches one of the comma-separated
// patterns.
bool inside(const char* patterns) noexcept;

}  // namespace hostwait::ranges
