// SPDX-License-Identifier: Apache-2.0
// Copyright The hostwait authors
// A caller's policy, which may come from an older header or be NULL, completed with defaults.
#pragma once

#include <hostwait/cai.h>

namespace hostwait::cai {

constexpr hostwait_cai_policy default_policy = {
    .size = sizeof(hostwait_cai_policy),
    .lenient = HOSTWAIT_CAI_LENIENT_DEFAULT,
    .intent = HOSTWAIT_CAI_READ | HOSTWAIT_CAI_WRITE,
    .options = 0,
    .device = -1,
    .use_device = -1,
    .sync = HOSTWAIT_CAI_SYNC_ENV,
    .ptds = HOSTWAIT_CAI_PTDS_TRUST,
    .capture = HOSTWAIT_CAI_CAPTURE_ERROR,
    .from_dict = 0,
    .legacy = {HOSTWAIT_CAI_LEGACY_PRODUCER_CURRENT, HOSTWAIT_CAI_LEGACY_VIA_DLPACK,
               HOSTWAIT_CAI_LEGACY_JOIN, HOSTWAIT_CAI_LEGACY_END},
    .hooks = nullptr,
};

// A copy, with defaults for the fields that an older caller's struct ends before.
hostwait_cai_policy complete_policy(const hostwait_cai_policy* given);

// The same without a copy where none is needed; `room` is used where one is.
inline const hostwait_cai_policy& policy_in_force(const hostwait_cai_policy* given,
                                                  hostwait_cai_policy* room) {
  if (given == nullptr) return default_policy;
  if (given->size >= sizeof *given) return *given;
  *room = complete_policy(given);
  return *room;
}

}  // namespace hostwait::cai
