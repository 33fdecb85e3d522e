// SPDX-License-Identifier: Apache-2.0
// Copyright The hostwait authors
// Policy decisions.
#include "policy.hpp"

namespace hostwait::policy {

namespace {

bool waits(hostwait_verdict verdict) noexcept {
  return verdict == HOSTWAIT_VERDICT_STREAM || verdict == HOSTWAIT_VERDICT_LEGACY ||
         verdict == HOSTWAIT_VERDICT_CONTEXT;
}

// A verdict of "unmeasured" is treated like "depends": only time can tell.
bool uncertain(hostwait_verdict verdict) noexcept {
  return verdict == HOSTWAIT_VERDICT_DEPENDS || verdict == HOSTWAIT_VERDICT_UNMEASURED;
}

bool refusable(unsigned kind) noexcept {
  return ((never_refused_kinds >> kind) & 1) == 0;
}

bool refuses(unsigned action) noexcept {
  return action == HOSTWAIT_ERROR || action == HOSTWAIT_ABORT;
}

bool match_one(const char* pattern, const char* pattern_end, const char* text) noexcept {
  const char* star = nullptr;
  const char* resume = nullptr;
  while (*text != '\0') {
    if (pattern != pattern_end && *pattern == '*') {
      star = ++pattern;
      resume = text;
    } else if (pattern != pattern_end && (*pattern == '?' || *pattern == *text)) {
      ++pattern;
      ++text;
    } else if (star != nullptr) {
      pattern = star;
      text = ++resume;
    } else {
      return false;
    }
  }
  while (pattern != pattern_end && *pattern == '*') ++pattern;
  return pattern == pattern_end;
}

}  // namespace

int frame_stack::push(action_set actions, int token, const char* label) noexcept {
  if (depth >= max_frames) return HOSTWAIT_NO_ROOM;
  frame& f = frames[depth];
  f.actions = actions;
  f.token = token;
  unsigned n = 0;
  if (label != nullptr)
    for (; n < label_bytes - 1 && label[n] != '\0'; ++n) f.label[n] = label[n];
  f.label[n] = '\0';
  ++depth;
  return token;
}

int frame_stack::pop(int token) noexcept {
  if (depth == 0 || frames[depth - 1].token != token) return HOSTWAIT_INVALID;
  --depth;
  return 0;
}

action_set frame_stack::over(action_set under) const noexcept {
  for (std::uint32_t i = 0; i < depth; ++i) under = lay_over(under, frames[i].actions);
  return under;
}

const char* frame_stack::label() const noexcept {
  for (std::uint32_t i = depth; i > 0; --i)
    if (frames[i - 1].label[0] != '\0') return frames[i - 1].label;
  return "";
}

action_set make_frame(int action, std::uint32_t kinds, std::uint32_t armed, int& error) noexcept {
  error = 0;
  if (action < HOSTWAIT_ALLOW || action > HOSTWAIT_TRAP || kinds == 0 ||
      (kinds & ~every_kind) != 0) {
    error = HOSTWAIT_INVALID;
  } else if ((kinds & start_only_kinds & ~armed) != 0) {
    error = HOSTWAIT_NOT_ARMED;
  }
  return error != 0 ? names_nothing : fill(kinds, static_cast<unsigned>(action), unnamed);
}

before_call decide_before(unsigned action, unsigned kind, hostwait_verdict verdict,
                          bool refuse_depends) noexcept {
  before_call now;
  const bool sure = waits(verdict) || (uncertain(verdict) && refuse_depends);
  if (!sure) return now;
  now.trap = action == HOSTWAIT_TRAP;
  now.refuse = refuses(action) && refusable(kind);
  now.abort = now.refuse && action == HOSTWAIT_ABORT;
  return now;
}

after_call decide_after(unsigned action, unsigned kind, hostwait_verdict verdict, bool over,
                        bool refused) noexcept {
  after_call then;
  if (refused) return {result::refused, true};
  const bool gate = action == HOSTWAIT_FAIL || refuses(action);
  if (waits(verdict)) {
    then.what = over ? result::waited : result::latent;
    then.violation = gate;
  } else if (uncertain(verdict)) {
    then.what = over ? result::waited : result::counted;
    // poll, queue_full and unlisted are back-pressure, not waits of the program's own making.
    then.violation = over && gate && ((start_only_kinds >> kind) & 1) == 0;
  } else if (over) {
    then.what = result::held;
  }
  return then;
}

bool matches_any(const char* patterns, const char* text) noexcept {
  while (*patterns != '\0') {
    const char* end = patterns;
    while (*end != '\0' && *end != ',') ++end;
    if (end != patterns && match_one(patterns, end, text)) return true;
    patterns = *end == ',' ? end + 1 : end;
  }
  return false;
}

}  // namespace hostwait::policy
