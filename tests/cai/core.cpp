// SPDX-License-Identifier: Apache-2.0
// Copyright The hostwait authors
// What the vectors do not say: older callers, missing arguments, hostile numbers, external events,
// the audit of opt-outs, driver failures half way.
#include <cstdlib>
#include <cstring>
#include <thread>

#include "cai/support/fake_driver.hpp"
#include "support/catch.hpp"

using namespace cai_test;

namespace {

constexpr uint64_t ctx = 0x3000, other_ctx = 0x3100, S = 0x5100, S2 = 0x5200, C = 0x6100;

fake_driver small_world() {
  fake_driver d;
  d.contexts[ctx] = {"ctx0", 0, true, 1};
  d.contexts[other_ctx] = {"ctx1", 1, true, 2};
  d.streams[S] = {"S", ctx, false};
  d.streams[S2] = {"S2", ctx, false};
  d.streams[C] = {"C", ctx, false};
  d.initial_context = ctx;
  return d;
}

hostwait_cai_ready behind(uint64_t stream) {
  hostwait_cai_ready r;
  HOSTWAIT_CAI_INIT(r);
  r.kind = HOSTWAIT_CAI_READY_STREAM;
  r.stream = stream;
  r.device = -1;
  return r;
}

hostwait_cai_stats stats() {
  hostwait_cai_stats s;
  HOSTWAIT_CAI_INIT(s);
  hostwait_cai_stats_get(&s);
  return s;
}

struct forget_driver {
  ~forget_driver() { hostwait_cai_set_driver(nullptr); }
};

}  // namespace

TEST_CASE("codes have names, unknown ones have none") {
  CHECK(std::string(hostwait_cai_code_name(HOSTWAIT_CAI_OK)) == "ok");
  CHECK(std::string(hostwait_cai_code_name(HOSTWAIT_CAI_ERR_STREAM_ZERO)) == "stream_zero");
  CHECK(std::string(hostwait_cai_code_name(HOSTWAIT_CAI_ERR_INVALID)) == "invalid");
  CHECK(std::string(hostwait_cai_code_name(HOSTWAIT_CAI_CODE_COUNT)).empty());
  CHECK(std::string(hostwait_cai_code_name(-1)).empty());
}

TEST_CASE("errors are optional, and an older caller's struct is not overrun") {
  hostwait_cai_desc d;
  const int64_t shape[] = {-1};
  CHECK(hostwait_cai_describe("<f4", 64, 1, shape, nullptr, 0, &d, nullptr) ==
        HOSTWAIT_CAI_ERR_SHAPE_NEGATIVE);
  hostwait_cai_error e;
  memset(&e, 0x55, sizeof e);
  e.size = offsetof(hostwait_cai_error, text);
  CHECK(hostwait_cai_describe("<f4", 64, 1, shape, nullptr, 0, &d, &e) ==
        HOSTWAIT_CAI_ERR_SHAPE_NEGATIVE);
  CHECK(e.code == HOSTWAIT_CAI_ERR_SHAPE_NEGATIVE);
  CHECK(std::string(e.key) == "shape");
  CHECK(e.text[0] == 0x55);

  hostwait_cai_stats old;
  memset(&old, 0x55, sizeof old);
  old.size = 24;
  CHECK(hostwait_cai_stats_get(&old) == HOSTWAIT_CAI_OK);
  CHECK(old.ready_now == 0x5555555555555555);
}

TEST_CASE("describe, type strings, element strides") {
  hostwait_cai_desc d;
  const int64_t shape[] = {2, 3};
  char text[40];
  int64_t strides[2];
  for (const char* typestr : {"<f4", "|u1", "<c16", "<M8[25us]", "|S5", "<U3", "|V16", ">f8"}) {
    REQUIRE(hostwait_cai_describe(typestr, 64, 2, shape, nullptr, 0, &d, nullptr) == 0);
    CHECK(hostwait_cai_typestr(&d, text, sizeof text) == strlen(typestr));
    CHECK(std::string(text) == typestr);
    CHECK(hostwait_cai_typestr(&d, text, strlen(typestr)) == 0);
    CHECK((d.flags & HOSTWAIT_CAI_F_C_CONTIGUOUS));
    REQUIRE(hostwait_cai_element_strides(&d, strides, nullptr) == 0);
    CHECK(strides[0] == 3);
    CHECK(strides[1] == 1);
  }
  const int64_t bits[] = {17};
  REQUIRE(hostwait_cai_describe("|t1", 64, 1, bits, nullptr, 0, &d, nullptr) == 0);
  CHECK(d.nbytes == 3);
  CHECK(d.hi == 3);
}

TEST_CASE("numbers at the edge of 64 bits") {
  hostwait_cai_desc d;
  const auto describe = [&](std::vector<int64_t> shape, std::vector<int64_t> strides) {
    return hostwait_cai_describe("|u1", 64, static_cast<uint32_t>(shape.size()), shape.data(),
                                 strides.data(), 0, &d, nullptr);
  };
  CHECK(describe({2}, {INT64_MIN}) == HOSTWAIT_CAI_ERR_OVERFLOW);
  CHECK(describe({2}, {INT64_MAX}) == HOSTWAIT_CAI_ERR_OVERFLOW);
  CHECK(describe({2}, {INT64_MAX - 1}) == HOSTWAIT_CAI_OK);
  CHECK(describe({3}, {INT64_MIN}) == HOSTWAIT_CAI_ERR_OVERFLOW);
  CHECK(describe({2, 2}, {INT64_MAX - 1, -2}) == HOSTWAIT_CAI_ERR_OVERFLOW);
  CHECK(describe({INT64_MAX}, {1}) == HOSTWAIT_CAI_OK);
  CHECK(d.hi == INT64_MAX);
  CHECK(describe({INT64_MAX, 2}, {0, 0}) == HOSTWAIT_CAI_ERR_OVERFLOW);
  CHECK(describe({INT64_MAX, 0, INT64_MAX}, {1, 1, 1}) == HOSTWAIT_CAI_OK);
  CHECK(d.count == 0);
  CHECK(hostwait_cai_describe("|V9223372036854775807", 64, 0, nullptr, nullptr, 0, &d, nullptr) ==
        HOSTWAIT_CAI_OK);
  CHECK(hostwait_cai_describe("|V9223372036854775808", 64, 0, nullptr, nullptr, 0, &d, nullptr) ==
        HOSTWAIT_CAI_ERR_ITEMSIZE);
  CHECK(hostwait_cai_describe("<U4611686018427387904", 64, 0, nullptr, nullptr, 0, &d, nullptr) ==
        HOSTWAIT_CAI_ERR_ITEMSIZE);
}

TEST_CASE("arguments that are missing") {
  hostwait_cai_ticket ticket;
  hostwait_cai_exported exported;
  int done = 0;
  const hostwait_cai_ready in = behind(S);
  CHECK(hostwait_cai_validate(nullptr, nullptr, nullptr, nullptr, nullptr) ==
        HOSTWAIT_CAI_ERR_INVALID);
  CHECK(hostwait_cai_acquire(nullptr, 1, {C}, nullptr, &ticket, nullptr) ==
        HOSTWAIT_CAI_ERR_INVALID);
  CHECK(hostwait_cai_acquire_host(&in, 1, nullptr, nullptr, nullptr) == HOSTWAIT_CAI_ERR_INVALID);
  CHECK(hostwait_cai_release(nullptr, nullptr) == HOSTWAIT_CAI_ERR_INVALID);
  CHECK(hostwait_cai_poll(nullptr, &done, nullptr) == HOSTWAIT_CAI_ERR_INVALID);
  CHECK(hostwait_cai_retire({0}, nullptr, nullptr) == HOSTWAIT_CAI_ERR_STREAM_ZERO);
  CHECK(hostwait_cai_drain(nullptr, nullptr, nullptr, nullptr) == HOSTWAIT_CAI_ERR_INVALID);
  CHECK(hostwait_cai_export_prepare(nullptr, &exported, nullptr) == HOSTWAIT_CAI_ERR_INVALID);
  CHECK(hostwait_cai_arrow_ready(nullptr, nullptr, nullptr, nullptr) == HOSTWAIT_CAI_ERR_INVALID);
  CHECK(hostwait_cai_exchange_find(nullptr) == nullptr);
  hostwait_cai_driver empty;
  HOSTWAIT_CAI_INIT(empty);
  CHECK(hostwait_cai_set_driver(&empty) == HOSTWAIT_CAI_ERR_INVALID);
}

TEST_CASE("external events: recorded again, and freed only when the graph is gone") {
  const forget_driver after;
  fake_driver d = small_world();
  d.captures["C"] = 1;
  d.use();
  hostwait_cai_policy policy;
  hostwait_cai_policy_init(&policy);
  policy.capture = HOSTWAIT_CAI_CAPTURE_EXTERNAL_EVENT;
  const hostwait_cai_ready in[] = {behind(S), behind(S2)};
  hostwait_cai_ticket ticket;
  REQUIRE(hostwait_cai_acquire(in, 2, {C}, &policy, &ticket, nullptr) == HOSTWAIT_CAI_OK);
  CHECK(d.actions == std::vector<std::string>{"EXTERNAL(S->C)", "EXTERNAL(S2->C)"});
  CHECK(ticket.edge[0].event != ticket.edge[1].event);
  REQUIRE(hostwait_cai_release(&ticket, nullptr) == HOSTWAIT_CAI_OK);
  d.captures.clear();
  d.records.clear();
  REQUIRE(hostwait_cai_rearm(&ticket, nullptr) == HOSTWAIT_CAI_OK);
  CHECK(d.records == std::vector<std::string>{"S", "S2"});
  CHECK(d.destroyed.empty());
  d.captures["S"] = 2;
  CHECK(hostwait_cai_rearm(&ticket, nullptr) == HOSTWAIT_CAI_ERR_CAPTURE_BOUNDARY);
  hostwait_cai_drop_external(&ticket);
  CHECK(d.destroyed.size() == 2);
  hostwait_cai_drop_external(&ticket);
  CHECK(d.destroyed.size() == 2);
}

TEST_CASE("another library's switches count only when they are named, and after our own") {
  const auto read = [](const char* names) {
    REQUIRE(hostwait_cai_env_aliases(names) == HOSTWAIT_CAI_OK);
    hostwait_cai_environment e;
    HOSTWAIT_CAI_INIT(e);
    REQUIRE(hostwait_cai_env_get(&e, nullptr) == HOSTWAIT_CAI_OK);
    return std::make_pair(static_cast<int>(e.sync), static_cast<int>(e.export_version));
  };
  const char* const sync = "CUPY_CUDA_ARRAY_INTERFACE_SYNC";
  const char* const version = "CUPY_CUDA_ARRAY_INTERFACE_EXPORT_VERSION";
  const std::string both = std::string(sync) + "," + version;
  setenv(sync, "0", 1);
  setenv(version, "2", 1);
  CHECK(read(nullptr) == std::make_pair(1, 3));
  CHECK(read(sync) == std::make_pair(0, 3));
  CHECK(read(version) == std::make_pair(1, 2));
  CHECK(read(both.c_str()) == std::make_pair(0, 2));
  setenv("HOSTWAIT_CUDA_ARRAY_INTERFACE_EXPORT_VERSION", "3", 1);
  CHECK(read(both.c_str()) == std::make_pair(0, 3));
  for (const char* name : {sync, version, "HOSTWAIT_CUDA_ARRAY_INTERFACE_EXPORT_VERSION"}) {
    unsetenv(name);
  }
  CHECK(read(nullptr) == std::make_pair(1, 3));
}

TEST_CASE("an opt-out with work pending is told to whoever listens") {
  const forget_driver after;
  fake_driver d = small_world();
  d.busy = true;
  d.use();
  std::vector<hostwait_cai_audit> told;
  hostwait_cai_hooks hooks;
  HOSTWAIT_CAI_INIT(hooks);
  hooks.user = &told;
  hooks.audit = [](void* user, const hostwait_cai_audit* audit) {
    static_cast<std::vector<hostwait_cai_audit>*>(user)->push_back(*audit);
  };
  hostwait_cai_policy policy;
  hostwait_cai_policy_init(&policy);
  policy.sync = HOSTWAIT_CAI_SYNC_OFF;
  policy.hooks = &hooks;
  const hostwait_cai_ready in[] = {behind(C), behind(S)};
  hostwait_cai_ticket ticket;
  const hostwait_cai_stats before = stats();
  REQUIRE(hostwait_cai_acquire(in, 2, {C}, &policy, &ticket, nullptr) == HOSTWAIT_CAI_OK);
  REQUIRE(told.size() == 1);
  CHECK(told[0].array == 1);
  CHECK(told[0].stream == S);
  CHECK(told[0].consumer == C);
  CHECK(stats().opt_outs - before.opt_outs == 2);
  CHECK(stats().opt_outs_pending - before.opt_outs_pending == 1);
  CHECK(d.ordering_calls == 0);

  d.busy = false;
  REQUIRE(hostwait_cai_acquire(in, 2, {C}, &policy, &ticket, nullptr) == HOSTWAIT_CAI_OK);
  CHECK(told.size() == 1);

  d.busy = true;
  d.captures["S"] = 1;  // a query would break it
  REQUIRE(hostwait_cai_acquire(in, 2, {C}, &policy, &ticket, nullptr) == HOSTWAIT_CAI_OK);
  CHECK(told.size() == 1);
  CHECK_FALSE(d.capture_broken);

  policy.hooks = nullptr;  // nobody listens: nothing is asked
  d.captures.clear();
  d.calls = 0;
  REQUIRE(hostwait_cai_acquire(in, 2, {C}, &policy, &ticket, nullptr) == HOSTWAIT_CAI_OK);
  CHECK(d.count["stream_query"] == 2);
}

TEST_CASE("hooks that fail end the acquire; after via_dlpack the way back is owed") {
  const forget_driver after;
  fake_driver d = small_world();
  d.use();
  hostwait_cai_hooks hooks;
  HOSTWAIT_CAI_INIT(hooks);
  hostwait_cai_policy policy;
  hostwait_cai_policy_init(&policy);
  policy.hooks = &hooks;
  hostwait_cai_ready in = behind(0);
  in.kind = HOSTWAIT_CAI_READY_UNKNOWN;
  hostwait_cai_ticket ticket;
  SECTION("failure") {
    hooks.producer_current = [](void*, const hostwait_cai_ready*, uint64_t*) { return -1; };
    CHECK(hostwait_cai_acquire(&in, 1, {C}, &policy, &ticket, nullptr) ==
          HOSTWAIT_CAI_ERR_CALLBACK);
    CHECK(d.ordering_calls == 0);
  }
  SECTION("to the legacy stream, where the producer's is not known") {
    hooks.via_dlpack = [](void*, const hostwait_cai_ready*, uint64_t consumer) {
      return consumer == C ? 1 : -1;
    };
    REQUIRE(hostwait_cai_acquire(&in, 1, {C}, &policy, &ticket, nullptr) == HOSTWAIT_CAI_OK);
    CHECK(d.actions.empty());
    d.releasing = true;
    REQUIRE(hostwait_cai_release(&ticket, nullptr) == HOSTWAIT_CAI_OK);
    CHECK(d.actions == std::vector<std::string>{"BACK(C->1@ctx0)"});
  }
  SECTION("to the producer's current stream, where it says so") {
    policy.legacy[0] = HOSTWAIT_CAI_LEGACY_VIA_DLPACK;
    policy.legacy[1] = HOSTWAIT_CAI_LEGACY_END;
    hooks.via_dlpack = [](void*, const hostwait_cai_ready*, uint64_t) { return 1; };
    hooks.producer_current = [](void*, const hostwait_cai_ready*, uint64_t* stream) {
      *stream = S;
      return 1;
    };
    REQUIRE(hostwait_cai_acquire(&in, 1, {C}, &policy, &ticket, nullptr) == HOSTWAIT_CAI_OK);
    d.releasing = true;
    REQUIRE(hostwait_cai_release(&ticket, nullptr) == HOSTWAIT_CAI_OK);
    CHECK(d.actions == std::vector<std::string>{"BACK(C->S)"});
  }
  SECTION("a host consumer lets the legacy stream be ordered, and waits for that") {
    hooks.via_dlpack = [](void*, const hostwait_cai_ready*, uint64_t consumer) {
      return consumer == HOSTWAIT_CAI_LEGACY ? 1 : -1;
    };
    REQUIRE(hostwait_cai_wait_host(&in, 1, &policy, nullptr, nullptr) == HOSTWAIT_CAI_OK);
    CHECK(d.actions == std::vector<std::string>{"HOST(1@ctx0)"});
  }
}

TEST_CASE("a handle that is used again in another context is noticed") {
  const forget_driver after;
  fake_driver d = small_world();
  d.use();
  const hostwait_cai_ready in = behind(S);
  hostwait_cai_ticket ticket;
  const auto hand_over = [&] {
    d.actions.clear();
    d.event_contexts.clear();
    d.releasing = false;
    REQUIRE(hostwait_cai_acquire(&in, 1, {C}, nullptr, &ticket, nullptr) == HOSTWAIT_CAI_OK);
    d.releasing = true;
    REQUIRE(hostwait_cai_release(&ticket, nullptr) == HOSTWAIT_CAI_OK);
    CHECK(d.actions == std::vector<std::string>{"WAIT(S->C)", "BACK(C->S)"});
  };
  hand_over();
  hand_over();
  CHECK(d.errors == 0);
  d.streams[S].context = other_ctx;
  d.streams[C].context = other_ctx;
  hand_over();
  CHECK(d.event_contexts == std::vector<std::string>{"ctx1", "ctx1"});
  CHECK(d.errors == 2);  // one refused record each, without effects
  hand_over();
  CHECK(d.errors == 2);
}

TEST_CASE("a handshake costs few calls") {
  const forget_driver after;
  fake_driver d = small_world();
  d.use();
  const hostwait_cai_ready in[] = {behind(S), behind(S2)};
  hostwait_cai_ticket ticket;
  using counts = std::map<std::string, int>;
  const auto hand_over = [&](size_t n) {
    d.count.clear();
    REQUIRE(hostwait_cai_acquire(in, n, {C}, nullptr, &ticket, nullptr) == HOSTWAIT_CAI_OK);
    REQUIRE(hostwait_cai_release(&ticket, nullptr) == HOSTWAIT_CAI_OK);
    return d.count;
  };
  hand_over(2);
  SECTION("one producer") {
    d.plain_events.clear();
    CHECK(hand_over(1) == counts{{"stream_is_capturing", 4},
                                 {"ctx_get_id", 1},
                                 {"event_record", 2},
                                 {"stream_wait_event", 2}});
    CHECK(d.plain_events.size() == 2);  // none that goes from stream to stream
  }
  SECTION("of several producers each is asked and waits; the consumer's end is marked once") {
    CHECK(hand_over(2) == counts{{"stream_is_capturing", 6},
                                 {"ctx_get_id", 1},
                                 {"event_record", 3},
                                 {"stream_wait_event", 4}});
  }
  SECTION("the promise that nothing captures saves the questions of acquire") {
    hostwait_cai_policy policy;
    hostwait_cai_policy_init(&policy);
    policy.options |= HOSTWAIT_CAI_TRUST_NO_CAPTURE;
    d.count.clear();
    REQUIRE(hostwait_cai_acquire(in, 1, {C}, &policy, &ticket, nullptr) == HOSTWAIT_CAI_OK);
    REQUIRE(hostwait_cai_release(&ticket, nullptr) == HOSTWAIT_CAI_OK);
    CHECK(d.count["stream_is_capturing"] == 2);
  }
  SECTION("a release on another thread knows nothing of this one's events") {
    REQUIRE(hostwait_cai_acquire(in, 1, {C}, nullptr, &ticket, nullptr) == HOSTWAIT_CAI_OK);
    d.count.clear();
    std::thread([&] { CHECK(hostwait_cai_release(&ticket, nullptr) == HOSTWAIT_CAI_OK); }).join();
    CHECK(d.count["ctx_get_id"] >= 1);
    CHECK(d.count["event_record"] == 1);
  }
  SECTION("a context that came to the same address meanwhile is noticed by the next acquire") {
    d.contexts[d.streams[S].context].id += 100;
    const int errors = d.errors;
    CHECK(hand_over(1)["event_record"] == 2);
    CHECK(d.errors == errors);
  }
}

TEST_CASE("a driver failure names the call and leaves an idle ticket") {
  const forget_driver after;
  fake_driver d = small_world();
  d.use();
  hostwait_cai_driver table = d.table();
  table.stream_wait_event = [](void*, void*, unsigned) { return 719; };
  REQUIRE(hostwait_cai_set_driver(&table) == HOSTWAIT_CAI_OK);
  const hostwait_cai_ready in = behind(S);
  hostwait_cai_ticket ticket;
  hostwait_cai_error e;
  HOSTWAIT_CAI_INIT(e);
  CHECK(hostwait_cai_acquire(&in, 1, {C}, nullptr, &ticket, &e) == HOSTWAIT_CAI_ERR_DRIVER);
  CHECK(e.driver == 719);
  CHECK(std::string(e.text).find("cuStreamWaitEvent") == 0);
  CHECK(ticket.state == HOSTWAIT_CAI_TICKET_IDLE);
  CHECK(hostwait_cai_release(&ticket, &e) == HOSTWAIT_CAI_OK);
}

TEST_CASE("release issues every edge it can and returns the first error") {
  const forget_driver after;
  fake_driver d = small_world();
  d.use();
  const hostwait_cai_ready in[] = {behind(S), behind(S2)};
  hostwait_cai_ticket ticket;
  REQUIRE(hostwait_cai_acquire(in, 2, {C}, nullptr, &ticket, nullptr) == HOSTWAIT_CAI_OK);
  d.captures["S"] = 1;
  d.actions.clear();
  d.releasing = true;
  CHECK(hostwait_cai_release(&ticket, nullptr) == HOSTWAIT_CAI_ERR_CAPTURE_BOUNDARY);
  CHECK(d.actions == std::vector<std::string>{"BACK(C->S2)"});
  CHECK_FALSE(d.capture_broken);
}

TEST_CASE("without a driver everything that needs one says so, and the rest works") {
  hostwait_cai_set_driver(nullptr);
  hostwait_cai_ticket ticket;
  const hostwait_cai_ready same = behind(C), in = behind(S);
  CHECK(hostwait_cai_acquire(&same, 1, {C}, nullptr, &ticket, nullptr) == HOSTWAIT_CAI_OK);
  CHECK(hostwait_cai_release(&ticket, nullptr) == HOSTWAIT_CAI_OK);
  // Where there is a driver it would be given a handle that is none, which it does not survive.
  if (hostwait_cai_prepare(nullptr) == HOSTWAIT_CAI_ERR_NO_DRIVER) {
    CHECK(hostwait_cai_acquire(&in, 1, {C}, nullptr, &ticket, nullptr) ==
          HOSTWAIT_CAI_ERR_NO_DRIVER);
  }
}
