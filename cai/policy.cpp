// SPDX-License-Identifier: Apache-2.0
// Copyright The hostwait authors
// Policies: defaults and completion.
#include "policy.hpp"

#include <cstring>

namespace hostwait::cai {

hostwait_cai_policy complete_policy(const hostwait_cai_policy* given) {
  hostwait_cai_policy policy;
  hostwait_cai_policy_init(&policy);
  if (given != nullptr) {
    memcpy(&policy, given, given->size < sizeof policy ? given->size : sizeof policy);
    policy.size = sizeof policy;
  }
  return policy;
}

}  // namespace hostwait::cai

void hostwait_cai_policy_init(hostwait_cai_policy* policy) {
  HOSTWAIT_CAI_INIT(*policy);
  policy->lenient = HOSTWAIT_CAI_LENIENT_DEFAULT;
  policy->intent = HOSTWAIT_CAI_READ | HOSTWAIT_CAI_WRITE;
  policy->device = -1;
  policy->use_device = -1;
  policy->legacy[0] = HOSTWAIT_CAI_LEGACY_PRODUCER_CURRENT;
  policy->legacy[1] = HOSTWAIT_CAI_LEGACY_VIA_DLPACK;
  policy->legacy[2] = HOSTWAIT_CAI_LEGACY_JOIN;
}

void hostwait_cai_policy_strict(hostwait_cai_policy* policy) {
  hostwait_cai_policy_init(policy);
  policy->lenient = 0;
}
