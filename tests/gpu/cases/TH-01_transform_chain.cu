// SPDX-License-Identifier: Apache-2.0
// Copyright The hostwait authors
// TH-01, unexpected_sync, Thrust: https://github.com/NVIDIA/thrust/issues/1081
// Half of the run time of a chain of transforms is waiting. Each algorithm ends in a wait for its
// stream: five findings for five lines of the user, none under par_nosync. The innermost user
// line that hostwait prints is one of Thrust's headers, since they are compiled into the user's
// program; the user's own lines stand further out in the stack and tell the findings apart.
//
// expect case: {"kind": "stream_sync", "call": "cuStreamSynchronize", "verdict": "legacy",
//               "calls": 1, "frame": "transform", "innermost": false, "at": "one"}
// expect case: {"kind": "stream_sync", "call": "cuStreamSynchronize", "verdict": "legacy",
//               "calls": 1, "frame": "transform", "innermost": false, "at": "two"}
// expect case: {"kind": "stream_sync", "call": "cuStreamSynchronize", "verdict": "legacy",
//               "calls": 1, "frame": "transform", "innermost": false, "at": "three"}
// expect case: {"kind": "stream_sync", "call": "cuStreamSynchronize", "verdict": "legacy",
//               "calls": 1, "frame": "transform", "innermost": false, "at": "four"}
// expect case: {"kind": "stream_sync", "call": "cuStreamSynchronize", "verdict": "legacy",
//               "calls": 1, "frame": "transform", "innermost": false, "at": "five"}
// expect control: nothing
#include <thrust/device_vector.h>
#include <thrust/execution_policy.h>
#include <thrust/functional.h>
#include <thrust/transform.h>

#include <memory>

#include "cases.hpp"

namespace {

using vector = thrust::device_vector<float>;

template <typename Policy>
void chain(const Policy& policy, vector& v) {
  const thrust::negate<float> f;
  cases::busy(nullptr, 10);
  thrust::transform(policy, v.begin(), v.end(), v.begin(), f);  // here one
  thrust::transform(policy, v.begin(), v.end(), v.begin(), f);  // here two
  thrust::transform(policy, v.begin(), v.end(), v.begin(), f);  // here three
  thrust::transform(policy, v.begin(), v.end(), v.begin(), f);  // here four
  thrust::transform(policy, v.begin(), v.end(), v.begin(), f);  // here five
}

template <typename Policy>
void with(const Policy& policy) {
  std::unique_ptr<vector> v;
  {
    const cases::setup labelled;
    v = std::make_unique<vector>(4096, 1.0F);
  }
  chain(policy, *v);
  const cases::setup labelled;
  v.reset();
}

void default_policy() {
  with(thrust::device);
}
void no_sync_policy() {
  with(thrust::cuda::par_nosync);
}

HOSTWAIT_CASE("TH-01", default_policy, no_sync_policy);

}  // namespace
