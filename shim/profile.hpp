// SPDX-License-Identifier: Apache-2.0
// Copyright The hostwait authors
// Verdicts measured on the user's own GPU, from a file that `hostwait probe --save` wrote. Pure: a
// parser of text and a look-up, no input or output. The format is described in docs/probe.md.
#pragma once

#include <cstddef>
#include <cstdint>

#include "classify.hpp"

namespace hostwait {

// What the profile says about one row, for memory of some kind and sizes of some range.
struct profile_entry {
  static constexpr std::uint8_t any_memory = 0xff;
  enum class aux_match : std::uint8_t { any, number, equal };  // equal: aux == aux2
  enum class waits : std::uint8_t { nothing, own, context, depends };

  row_id row = row_count;
  std::uint8_t source = any_memory, destination = any_memory;
  aux_match match = aux_match::any;
  waits what = waits::nothing;
  std::uint16_t next = 0;  // of the same row; 0: none
  std::uint64_t min_bytes = 0, max_bytes = ~std::uint64_t{0}, aux = 0;
};

struct profile_problem {
  unsigned line = 0;  // from 1
  const char* what = "";
};

class verdict_profile {
 public:
  static constexpr unsigned capacity = 1024;

  // Replaces what was there. False: the text is not understood and the profile is empty. Lines of
  // functions that the table does not have are counted and left out.
  bool parse(const char* text, std::size_t bytes, profile_problem& problem) noexcept;

  unsigned entries() const noexcept { return used_; }
  unsigned left_out() const noexcept { return left_out_; }
  int driver_version() const noexcept { return driver_version_; }
  int compute_capability() const noexcept { return compute_capability_; }

  // The first entry that fits; null: nothing was measured.
  const profile_entry* find(row_id row, const call_facts& facts, hostwait_memory source,
                            hostwait_memory destination) const noexcept;

 private:
  const char* parse_line(const char* begin, const char* end) noexcept;
  void clear() noexcept;

  profile_entry list_[capacity + 1] = {};  // from 1
  std::uint16_t first_[row_count] = {}, last_[row_count] = {};
  unsigned used_ = 0, left_out_ = 0;
  int driver_version_ = 0, compute_capability_ = 0;
};

// Puts the profile's verdict in place of the one that classify() gave. Memory kinds as handed to
// classify(). False and no change where the profile has nothing to say: other device or driver,
// null pointer, a capturing stream, a launch under CUDA_LAUNCH_BLOCKING.
bool profile_override(const verdict_profile& profile, row_id row, const call_facts& facts,
                      hostwait_memory source, hostwait_memory destination, const surroundings& now,
                      judgement& verdict) noexcept;

}  // namespace hostwait
