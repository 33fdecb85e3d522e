// SPDX-License-Identifier: Apache-2.0
// Copyright The hostwait authors
// Policy: which action applies to a call of a kind on this thread. Pure data and functions: no
// input or output, no CUDA call. The shim's state lives in state.hpp.
#pragma once

#include <cstddef>
#include <cstdint>

#include "hostwait/hostwait.h"
#include "hostwait/record.h"

namespace hostwait::policy {

// One action per kind, four bits each: kind i in bits 4i..4i+3. In a frame, `unnamed` stands for
// kinds that the frame does not mention.
using action_set = std::uint64_t;

inline constexpr unsigned kind_count = HOSTWAIT_KIND_COUNT;
inline constexpr unsigned unnamed = 15;
inline constexpr std::uint32_t start_only_kinds =
    HOSTWAIT_QUEUE_FULL | HOSTWAIT_POLL | HOSTWAIT_UNLISTED;
inline constexpr std::uint32_t every_kind = HOSTWAIT_ALL | start_only_kinds;
// free, host_free, module, context: refusing the call would leak or break the program, so `error`
// and `abort` make it and count a violation.
inline constexpr std::uint32_t never_refused_kinds =
    HOSTWAIT_FREE | HOSTWAIT_HOST_FREE | HOSTWAIT_MODULE | HOSTWAIT_CONTEXT | start_only_kinds;

// Bit i of `kinds` to bit 4i: one step for all kinds, since push and pop are on hot paths.
constexpr action_set spread(std::uint32_t kinds) noexcept {
  action_set x = kinds & ((1u << kind_count) - 1);
  x = (x | x << 24) & 0x000000ff000000ff;
  x = (x | x << 12) & 0x000f000f000f000f;
  x = (x | x << 6) & 0x0303030303030303;
  return (x | x << 3) & 0x1111111111111111;
}
inline constexpr std::uint32_t all_bits = (1u << kind_count) - 1;

constexpr action_set fill(std::uint32_t kinds, unsigned action, unsigned others) noexcept {
  return spread(kinds) * action | spread(~kinds & all_bits) * others;
}
inline constexpr action_set all_log = fill(every_kind, HOSTWAIT_LOG, HOSTWAIT_LOG);
inline constexpr action_set all_allow = fill(every_kind, HOSTWAIT_ALLOW, HOSTWAIT_ALLOW);
inline constexpr action_set names_nothing = fill(every_kind, unnamed, unnamed);

constexpr unsigned action_of(action_set set, unsigned kind) noexcept {
  return static_cast<unsigned>(set >> (4 * kind)) & 15;
}

// `over` where it names a kind, `under` elsewhere.
constexpr action_set lay_over(action_set under, action_set over) noexcept {
  static_assert(unnamed == 15);
  const action_set all_ones = over & over >> 1 & over >> 2 & over >> 3 & spread(all_bits);
  const action_set keep = all_ones * 15;
  return (under & keep) | (over & ~keep);
}
static_assert(lay_over(fill(all_bits, 1, 1), fill(0x5, 3, unnamed)) == fill(0x5, 3, 1));

inline constexpr unsigned max_frames = 64;
inline constexpr unsigned label_bytes = 64;

struct frame {
  action_set actions;
  int token;
  char label[label_bytes];
};

// A stack of frames, newest last. Not synchronized.
struct frame_stack {
  std::uint32_t depth = 0;
  frame frames[max_frames];

  // HOSTWAIT_NO_ROOM, or the token.
  int push(action_set actions, int token, const char* label) noexcept;
  // 0, or HOSTWAIT_INVALID where `token` is not the newest frame's.
  int pop(int token) noexcept;
  // All frames laid over `under`, oldest first.
  action_set over(action_set under) const noexcept;
  // Label of the newest frame that has one, "" otherwise.
  const char* label() const noexcept;
};

// The frame for (action, kinds): HOSTWAIT_INVALID or HOSTWAIT_NOT_ARMED in `error`, 0 if fine.
action_set make_frame(int action, std::uint32_t kinds, std::uint32_t armed, int& error) noexcept;

// What happens to one call, before and after it: the table of DESIGN section 4.
struct before_call {
  bool refuse = false;
  bool trap = false;
  bool abort = false;
};
before_call decide_before(unsigned action, unsigned kind, hostwait_verdict verdict,
                          bool refuse_depends) noexcept;

enum class result : std::uint8_t { nothing, counted, waited, latent, refused, held };
struct after_call {
  result what = result::nothing;
  bool violation = false;
};
// `over`: the call stayed longer than its own cost.
after_call decide_after(unsigned action, unsigned kind, hostwait_verdict verdict, bool over,
                        bool refused) noexcept;

// `*` and `?` patterns, comma-separated; true if one matches the whole of `text`.
bool matches_any(const char* patterns, const char* text) noexcept;

}  // namespace hostwait::policy
