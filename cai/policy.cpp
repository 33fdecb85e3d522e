// SPDX-License-Identifier: Apache-2.0
// Copyright The hostwait authors
// Policies: defaults and completion.
#include "policy.hpp"

#include <cstring>

namespace hostwait::cai {

hostwait_cai_policy complete_policy(const hostwait_cai_policy* given) {
  hostwait_cai_policy policy = default_policy;
  if (given != nullptr) {
    memcpy(&policy, given, given->size < sizeof policy ? given->size : sizeof policy);
    policy.size = sizeof policy;
  }
  return policy;
}

}  // namespace hostwait::cai

void hostwait_cai_policy_init(hostwait_cai_policy* policy) {
  *policy = hostwait::cai::default_policy;
}

void hostwait_cai_policy_strict(hostwait_cai_policy* policy) {
  hostwait_cai_policy_init(policy);
  policy->lenient = 0;
}
