// SPDX-License-Identifier: Apache-2.0
// Copyright The hostwait authors
// Included before the example: takes one half of the handshake out of every policy, so that the
// tests can show that they notice.
#pragma once

#include <hostwait/cai.h>

static inline void mutant_policy_init(hostwait_cai_policy* policy) {
  hostwait_cai_policy_init(policy);
#if defined(MUTANT_NO_WAIT)
  policy->sync = HOSTWAIT_CAI_SYNC_OFF;
#elif defined(MUTANT_NO_BACK_EDGE)
  policy->options |= HOSTWAIT_CAI_NO_BACK_EDGE;
#endif
}
#define hostwait_cai_policy_init mutant_policy_init
