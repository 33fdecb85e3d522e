// SPDX-License-Identifier: Apache-2.0
// Copyright The hostwait authors
// NVTX ranges as programs write them: push and pop, start and end, domains, registered strings;
// sites carry the range that was open.
#include <dlfcn.h>
#include <hostwait/hostwait.h>
#include <nvtx3/nvToolsExt.h>

#include <map>
#include <string>
#include <thread>
#include <vector>

#include "nvtx_abi.hpp"
#include "support/catch.hpp"
#include "support/driver.hpp"
#include "support/live_record.hpp"

namespace {

void wait_as(const char* label) {
  static const CUcontext context = hostwait_test::first_context();
  DRIVER(cuCtxSetCurrent)(context);
  const int token = hostwait_push_label(HOSTWAIT_LOG, HOSTWAIT_SYNC, label);
  REQUIRE(DRIVER(cuCtxSynchronize)() == CUDA_SUCCESS);
  hostwait_pop(token);
}

// Label of each site -> path of its range, from this process's live record.
std::map<std::string, std::string> ranges_by_label() {
  const hostwait::record_file record = hostwait_test::live_record();
  std::map<std::string, std::string> found;
  record.for_each(HOSTWAIT_SECTION_SITES, [&](std::uint32_t i) {
    const hostwait_record_site site = record.site(i);
    found[std::string(record.string(site.label))] =
        site.range == 0 ? "" : std::string(record.string(record.range(site.range - 1).path));
  });
  return found;
}

nvtxEventAttributes_t event(nvtxMessageType_t type, nvtxMessageValue_t message) {
  nvtxEventAttributes_t e = {};
  e.version = NVTX_VERSION;
  e.size = NVTX_EVENT_ATTRIB_STRUCT_SIZE;
  e.messageType = type;
  e.message = message;
  return e;
}

}  // namespace

TEST_CASE("the declared interface is nvtx3's own") {
  using namespace hostwait::nvtx;
  CHECK(sizeof(event_attributes) == sizeof(nvtxEventAttributes_t));
  CHECK(offsetof(event_attributes, message_type) == offsetof(nvtxEventAttributes_t, messageType));
  CHECK(offsetof(event_attributes, message) == offsetof(nvtxEventAttributes_t, message));
  CHECK(static_cast<int>(message_ascii) == NVTX_MESSAGE_TYPE_ASCII);
  CHECK(static_cast<int>(message_unicode) == NVTX_MESSAGE_TYPE_UNICODE);
  CHECK(static_cast<int>(message_registered) == NVTX_MESSAGE_TYPE_REGISTERED);
}

TEST_CASE("sites carry the path of the ranges open on their thread") {
  wait_as("outside");
  CHECK(nvtxRangePushA("train_step") == 0);
  wait_as("one");
  CHECK(nvtxRangePushW(L"forward") == 1);
  wait_as("two");
  CHECK(nvtxRangePop() == 1);
  nvtxDomainHandle_t domain = nvtxDomainCreateA("lib");
  nvtxStringHandle_t name = nvtxDomainRegisterStringA(domain, "solve");
  nvtxMessageValue_t registered;
  registered.registered = name;
  const nvtxEventAttributes_t e = event(NVTX_MESSAGE_TYPE_REGISTERED, registered);
  CHECK(nvtxDomainRangePushEx(domain, &e) == 1);
  wait_as("domain");
  // Domains nest independently: the default domain's range ends first.
  CHECK(nvtxRangePop() >= 0);
  wait_as("crossed");
  CHECK(nvtxDomainRangePop(domain) == 0);
  wait_as("after");
  std::thread([] { wait_as("other thread"); }).join();

  const auto found = ranges_by_label();
  CHECK(found.at("outside").empty());
  CHECK(found.at("one") == "train_step");
  CHECK(found.at("two") == "train_step/forward");
  CHECK(found.at("domain") == "train_step/lib:solve");
  CHECK(found.at("crossed") == "lib:solve");
  CHECK(found.at("after").empty());
  CHECK(found.at("other thread").empty());
}

TEST_CASE("a started range holds for the process until it ends, on any thread") {
  nvtxMessageValue_t text;
  text.ascii = "epoch";
  const nvtxEventAttributes_t e = event(NVTX_MESSAGE_TYPE_ASCII, text);
  const nvtxRangeId_t id = nvtxRangeStartEx(&e);
  std::thread([] { wait_as("started, other thread"); }).join();
  std::thread([&] { nvtxRangeEnd(id); }).join();
  wait_as("ended");
  const auto found = ranges_by_label();
  CHECK(found.at("started, other thread") == "epoch");
  CHECK(found.at("ended").empty());
}

TEST_CASE("copies of NVTX in one process share a thread's path") {
  using push_function = int (*)(const char*);
  using pop_function = int (*)();
  struct copy {
    push_function push, push_own;
    pop_function pop;
  };
  std::vector<copy> copies;
  for (const char* path : {NVTX_PLUGIN_A, NVTX_PLUGIN_B}) {
    void* library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    REQUIRE(library != nullptr);
    copies.push_back({reinterpret_cast<push_function>(dlsym(library, "plugin_push")),
                      reinterpret_cast<push_function>(dlsym(library, "plugin_push_own")),
                      reinterpret_cast<pop_function>(dlsym(library, "plugin_pop"))});
  }
  std::thread([&] {  // one range stays open
    CHECK(nvtxRangePushA("program") == 0);
    CHECK(copies[0].push("first") == 1);
    CHECK(copies[1].push("second") == 2);
    wait_as("three copies");
    // A pop by any copy ends the newest range of the default domain, as with one copy.
    CHECK(nvtxRangePop() == 2);
    wait_as("two left");
    CHECK(copies[1].push_own("own") == 2);
    wait_as("own domain");
    CHECK(copies[1].pop() == 2);
    CHECK(copies[0].pop() == 1);
    wait_as("own domain alone");
  })
      .join();
  const auto found = ranges_by_label();
  CHECK(found.at("three copies") == "program/first/second");
  CHECK(found.at("two left") == "program/first");
  CHECK(found.at("own domain") == "program/first/own:größer");
  CHECK(found.at("own domain alone") == "own:größer");
}

TEST_CASE("deep nesting is counted, a stray pop is harmless") {
  CHECK(nvtxRangePop() < 0);
  for (int i = 0; i < 100; ++i) nvtxRangePushA("x");
  wait_as("deep");
  for (int i = 0; i < 100; ++i) CHECK(nvtxRangePop() == 99 - i);
  CHECK(nvtxRangePop() < 0);
  CHECK(ranges_by_label().at("deep").starts_with("x/x/x"));
}
