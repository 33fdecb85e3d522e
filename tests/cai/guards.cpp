// SPDX-License-Identifier: Apache-2.0
// Copyright The hostwait authors
// The C++ guards: the back edge comes once, also on exceptions and through moves.
#include <hostwait/cai.hpp>

#include <type_traits>

#include "cai/support/fake_driver.hpp"
#include "support/catch.hpp"

namespace cai = hostwait::cai;
using namespace cai_test;

namespace {

using actions = std::vector<std::string>;

struct world {
  fake_driver driver;
  world() {
    driver.contexts[0x3000] = {"ctx0", 0, true, 1};
    driver.streams[0x5100] = {"S", 0x3000, false};
    driver.streams[0x6100] = {"C", 0x3000, false};
    driver.initial_context = 0x3000;
    driver.use();
  }
  ~world() { hostwait_cai_set_driver(nullptr); }
  const cai::stream s{hostwait_cai_stream{0x5100}}, c{hostwait_cai_stream{0x6100}};
  const actions& done() const { return driver.actions; }
};

static_assert(std::is_nothrow_move_constructible_v<cai::use>);
static_assert(!std::is_copy_constructible_v<cai::use>);
static_assert(!std::is_constructible_v<cai::stream, int>);
static_assert(!std::is_constructible_v<cai::stream, std::nullptr_t>);
static_assert(std::is_constructible_v<cai::stream, struct CUstream_st*>);

int failures_told = 0;

}  // namespace

TEST_CASE("a scope is a use") {
  world w;
  {
    const cai::use in_use(w.c, {cai::ready::behind(w.s)});
    CHECK(w.done() == actions{"WAIT(S->C)"});
    w.driver.releasing = true;
  }
  CHECK(w.done() == actions{"WAIT(S->C)", "BACK(C->S)"});
}

TEST_CASE("an exception ends the use, too") {
  world w;
  try {
    const cai::use in_use(w.c, {cai::ready::behind(w.s)});
    w.driver.releasing = true;
    throw 1;
  } catch (int) {
  }
  CHECK(w.done() == actions{"WAIT(S->C)", "BACK(C->S)"});
}

TEST_CASE("a moved-from guard does nothing, whoever owns the use ends it once") {
  world w;
  {
    cai::use outer;
    {
      cai::use inner(w.c, {cai::ready::behind(w.s)});
      cai::use second(std::move(inner));
      outer = std::move(second);
      w.driver.releasing = true;
    }
    CHECK(w.done() == actions{"WAIT(S->C)"});
    CHECK_FALSE(outer.finish());
    CHECK(w.done() == actions{"WAIT(S->C)", "BACK(C->S)"});
    CHECK_FALSE(outer.finish());
  }
  CHECK(w.done() == actions{"WAIT(S->C)", "BACK(C->S)"});
}

TEST_CASE("assignment ends the former use") {
  world w;
  cai::use a(w.c, {cai::ready::behind(w.s)});
  w.driver.actions.clear();
  w.driver.releasing = true;
  a = cai::use();
  CHECK(w.done() == actions{"BACK(C->S)"});
}

TEST_CASE("what cannot be acquired is thrown, or returned on request") {
  world w;
  w.driver.captures["C"] = 1;
  try {
    const cai::use in_use(w.c, {cai::ready::behind(w.s)});
    FAIL("acquired across the border of a capture");
  } catch (const cai::failure& e) {
    CHECK(e.details().code == HOSTWAIT_CAI_ERR_CAPTURE_BOUNDARY);
    CHECK(std::string(e.what()).size() > 10);
  }
  cai::error error;
  const cai::ready in = cai::ready::behind(w.s);
  const cai::use in_use(std::nothrow, w.c, {&in, 1}, &error);
  CHECK(error.code == HOSTWAIT_CAI_ERR_CAPTURE_BOUNDARY);
  CHECK(w.done().empty());
}

TEST_CASE("a destructor that fails tells the handler") {
  world w;
  cai::set_release_handler([](const cai::error& e) noexcept {
    failures_told += e.code == HOSTWAIT_CAI_ERR_CAPTURE_BOUNDARY;
  });
  {
    const cai::use in_use(w.c, {cai::ready::behind(w.s)});
    w.driver.captures["C"] = 1;
  }
  cai::set_release_handler(nullptr);
  CHECK(failures_told == 1);
  CHECK_FALSE(w.driver.capture_broken);
}

TEST_CASE("a stream's work and the host") {
  world w;
  cai::use in_use(w.c, {cai::ready::behind(w.s)});
  w.driver.busy = true;
  CHECK_FALSE(in_use.done());
  w.driver.busy = false;
  CHECK(in_use.done());
  w.driver.actions.clear();
  cai::wait_host({cai::ready::behind(w.s)});
  CHECK(w.done() == actions{"HOST(S)"});
  cai::policy off;
  off.sync = HOSTWAIT_CAI_SYNC_OFF;
  cai::wait_host({cai::ready::behind(w.s)}, off);
  CHECK(w.done() == actions{"HOST(S)"});
}
