// SPDX-License-Identifier: Apache-2.0
// Copyright The hostwait authors
// arm=unlisted: calls of never.def are timed, and those over the threshold are shown as held. The
// threshold is 0 here (HOSTWAIT_OPTIONS of the test), so that every call is over it.
#include <hostwait/hostwait.h>

#include <string>

#include "support/catch.hpp"
#include "support/driver.hpp"
#include "support/live_record.hpp"

namespace {

hostwait_record_counters of_call(const std::string& symbol) {
  const hostwait::record_file record = hostwait_test::live_record();
  hostwait_record_counters all{};
  hostwait_test::each_counter(record, [&](const auto& c, const auto& site) {
    const auto call = record.call(site.call);
    if (record.string(call.name) != symbol || call.kind != HOSTWAIT_KIND_UNLISTED) return;
    all.calls += c.calls;
    all.held += c.held;
    all.violations += c.violations;
  });
  return all;
}

// The first call of this process, whichever case comes first.
void init_once() {
  static const CUresult result = DRIVER(cuInit)(0);
  REQUIRE(result == CUDA_SUCCESS);
}

}  // namespace

TEST_CASE("a call without a row is counted as held when it stays over the threshold") {
  init_once();
  const hostwait_record_counters before = of_call("cuDeviceGetCount");
  int devices = 0;
  for (int i = 0; i < 5; ++i) REQUIRE(DRIVER(cuDeviceGetCount)(&devices) == CUDA_SUCCESS);
  CHECK(devices == 1);
  CHECK(of_call("cuDeviceGetCount").calls == before.calls + 5);
  CHECK(of_call("cuDeviceGetCount").held == before.held + 5);
  CHECK(of_call("cuInit").held == 1);
}

TEST_CASE("unlisted calls are never refused and no violation") {
  init_once();
  int devices = 0;
  const int token = hostwait_push(HOSTWAIT_ERROR, HOSTWAIT_UNLISTED);
  CHECK(token > 0);
  CHECK(DRIVER(cuDeviceGetCount)(&devices) == CUDA_SUCCESS);
  CHECK(hostwait_pop(token) == 0);
  CHECK(of_call("cuDeviceGetCount").violations == 0);
}

TEST_CASE("the driver is described although the first watched call comes before cuInit") {
  // The first record header is written inside cuInit, when devices cannot be asked yet.
  init_once();
  CUcontext context = nullptr;
  CUdeviceptr memory = 0;
  REQUIRE(DRIVER(cuDevicePrimaryCtxRetain)(&context, 0) == CUDA_SUCCESS);
  REQUIRE(DRIVER(cuCtxSetCurrent)(context) == CUDA_SUCCESS);
  REQUIRE(DRIVER(cuMemAlloc_v2)(&memory, 1 << 20) == CUDA_SUCCESS);
  REQUIRE(DRIVER(cuMemFree_v2)(memory) == CUDA_SUCCESS);
  const hostwait::record_file record = hostwait_test::live_record();
  // On the measured device cuMemFree waits for the context; were the device not known, the verdict
  // would be `unmeasured`.
  bool seen = false;
  record.for_each(HOSTWAIT_SECTION_SITES, [&](std::uint32_t i) {
    if (record.string(record.call(record.site(i).call).name) != "cuMemFree_v2") return;
    seen = true;
    CHECK(record.site(i).verdict == HOSTWAIT_VERDICT_CONTEXT);
  });
  CHECK(seen);
}
