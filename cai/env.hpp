// SPDX-License-Identifier: Apache-2.0
// Copyright The hostwait authors
// The library's switches in the environment.
#pragma once

#include <hostwait/cai.h>

namespace hostwait::cai {

bool env_sync();           // HOSTWAIT_CUDA_ARRAY_INTERFACE_SYNC and the aliases
int env_export_version();  // HOSTWAIT_CUDA_ARRAY_INTERFACE_EXPORT_VERSION

// Is the order given by streams and events to be kept under this policy?
inline bool sync_wanted(const hostwait_cai_policy& policy) {
  return policy.sync == HOSTWAIT_CAI_SYNC_ENV ? env_sync() : policy.sync == HOSTWAIT_CAI_SYNC_ON;
}

}  // namespace hostwait::cai
