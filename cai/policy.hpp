// SPDX-License-Identifier: Apache-2.0
// Copyright The hostwait authors
// A caller's policy, which may come from an older header or be NULL, completed with defaults.
#pragma once

#include <hostwait/cai.h>

namespace hostwait::cai {

hostwait_cai_policy complete_policy(const hostwait_cai_policy* given);

}  // namespace hostwait::cai
