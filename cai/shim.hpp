// SPDX-License-Identifier: Apache-2.0
// Copyright The hostwait authors
// The preloaded policy library, where it is present: own host waits carry the label "exchange",
// and no call is made that a policy would refuse.
#pragma once

#include <hostwait/hostwait.h>

#include <cstddef>

namespace hostwait::cai {

// May the host be stopped inside a driver call of this kind? Not where a policy refuses it, and not
// where the policy cannot be asked.
inline bool host_wait_allowed(uint32_t kind, hostwait_action* action) {
  *action = HOSTWAIT_ALLOW;
  if (!hostwait_present()) return true;
  const int effective = hostwait_action_of(kind);
  if (effective < 0) return false;
  *action = static_cast<hostwait_action>(effective);
  return *action != HOSTWAIT_ERROR && *action != HOSTWAIT_ABORT;
}

// A frame that changes nothing but the label.
class exchange_label {
 public:
  exchange_label(hostwait_action action, uint32_t kind)
      : token_(hostwait_push_label(action, kind, "exchange")) {}
  ~exchange_label() {
    if (token_ > 0) hostwait_pop(token_);
  }
  exchange_label(const exchange_label&) = delete;
  exchange_label& operator=(const exchange_label&) = delete;

 private:
  int token_;
};

}  // namespace hostwait::cai
