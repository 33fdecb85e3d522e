// SPDX-License-Identifier: Apache-2.0
// Copyright The hostwait authors
// One program, built once per route (static and shared runtime, per-thread default stream, linked
// driver, dlopen): a fixed number of waits of every default kind. `routes log` makes them,
// `routes error` has each of them refused in a scope. Prints a checksum of what it read back.
#include <hostwait/hostwait.h>

#include <thread>
#include <vector>

#include "api.hpp"

namespace {

size_t busy_bytes = size_t{256} << 20;
int busy_fills = 160;  // about 10 ms of writes on a GPU that writes 4 TB/s
void* busy_buffer;
api::stream side;
uint64_t checksum = 1469598103934665603u;

void must(int error, const char* what) {
  api::check(error, what);
}
#define MUST(call) must(api::call, #call)

void busy(api::stream s) {
  for (int i = 0; i < busy_fills; i++) MUST(fill_async(busy_buffer, i & 0xff, busy_bytes, s));
}

void add(const std::vector<unsigned char>& bytes) {
  for (unsigned char byte : bytes) checksum = (checksum ^ byte) * 1099511628211u;
}

// Every number here is part of the proof: run.py expects these counts on every route.
void make_waits() {
  constexpr size_t small = 64 << 10, large = 4 << 20;
  std::vector<unsigned char> host(large, 7);
  void *device, *other, *pinned;
  MUST(device_alloc(&device, large));
  MUST(device_alloc(&other, large));
  MUST(pinned_alloc(&pinned, large));
  MUST(to_device(device, host.data(), large));
  MUST(stream_sync(side));
  api::event event;
  MUST(event_create(&event));

  for (int i = 0; i < 3; i++) {
    busy(side);
    MUST(stream_sync(side));
  }
  for (int i = 0; i < 2; i++) {
    busy(side);
    MUST(event_record(event, side));
    MUST(event_sync(event));
  }
  for (int i = 0; i < 2; i++) {
    busy(side);
    MUST(device_sync());
  }
  for (int i = 0; i < 4; i++) {  // async by name, pageable destination: waits
    busy(side);
    MUST(to_host_async(host.data(), device, small, side));
    add({host.begin(), host.begin() + small});
  }
  for (int i = 0; i < 5; i++) {
    busy(nullptr);
    MUST(to_host(host.data(), device, small));
    add({host.begin(), host.begin() + small});
  }
  for (int i = 0; i < 2; i++) {  // pageable source beyond 2 MiB: waits
    busy(side);
    MUST(to_device_async(device, host.data(), large, side));
  }
  MUST(stream_sync(side));
  for (int i = 0; i < 3; i++) {  // pinned destination: no wait, no finding
    busy(side);
    MUST(to_host_async(pinned, device, small, side));
  }
  MUST(stream_sync(side));
  busy(nullptr);
  MUST(on_device(other, device, large));  // the host does not wait, whatever the name says
  MUST(fill(other, 3, large));
  MUST(fill(pinned, 5, large));  // waits: pinned memory
  add({static_cast<unsigned char*>(pinned), static_cast<unsigned char*>(pinned) + small});
  MUST(pin(host.data(), large));
  busy(side);
  MUST(unpin(host.data()));
  busy(side);
  MUST(pinned_free(pinned));
  for (void* p : {device, other}) {
    busy(side);
    MUST(device_free(p));
  }
  for (int i = 0; i < 10; i++) MUST(stream_sync(side));  // idle: latent
}

int failures;
void expect(bool good, const char* what) {
  printf("%s %s\n", good ? "PASS" : "FAIL", what);
  failures += !good;
}

// Refusal: the call returns 800, changes nothing, and the next one works; other threads go on.
void refuse_waits() {
  constexpr int refused = 800;
  constexpr size_t small = 4096;
  std::vector<unsigned char> host(small, 7), back(small, 9);
  void* device;
  MUST(device_alloc(&device, small));
  MUST(to_device(device, host.data(), small));
  busy(side);
  const int token = hostwait_push_label(HOSTWAIT_ERROR, HOSTWAIT_SYNC, "refused here");
  expect(token > 0, "the shim takes the frame");
  expect(api::stream_sync(side) == refused && api::last_error_is(refused), "stream wait refused");
  expect(api::device_sync() == refused && api::last_error_is(refused), "device wait refused");
  expect(api::to_host(back.data(), device, small) == refused && api::last_error_is(refused),
         "blocking copy refused");
  expect(api::to_host_async(back.data(), device, small, side) == refused &&
             api::last_error_is(refused),
         "async copy into pageable memory refused");
  expect(back == std::vector<unsigned char>(small, 9), "the destination is untouched");
  hostwait_finding finding;
  memset(&finding, 0, sizeof finding);
  finding.size = sizeof finding;
  expect(hostwait_last_refused(&finding) == 0 && finding.kind == HOSTWAIT_ASYNC_COPY,
         "the last refused call is known");
  int other = -1;
  std::thread([&other] {
    api::start();
    other = api::stream_sync(side);
  }).join();
  expect(other == 0, "another thread's wait is made");
  expect(hostwait_pop(token) == 0, "the frame is popped");
  expect(api::to_host(back.data(), device, small) == 0 && back == host,
         "the copy works afterwards");
  expect(api::stream_sync(side) == 0, "the stream wait works afterwards");
  add(back);
  MUST(device_free(device));
}

}  // namespace

int main(int argc, char** argv) {
  if (const char* text = getenv("HOSTWAIT_ROUTES_BUSY")) {  // "MIB,FILLS": for slower devices
    int mib = 0;
    if (sscanf(text, "%d,%d", &mib, &busy_fills) != 2 || mib < 1) return 2;
    busy_bytes = static_cast<size_t>(mib) << 20;
  }
  api::start();
  MUST(stream_create(&side));
  MUST(device_alloc(&busy_buffer, busy_bytes));
  busy(side);
  MUST(stream_sync(side));
  if (argc > 1 && strcmp(argv[1], "error") == 0) {
    refuse_waits();
  } else {
    make_waits();
  }
  printf("checksum %016llx\n", static_cast<unsigned long long>(checksum));
  return failures == 0 ? 0 : 1;
}
