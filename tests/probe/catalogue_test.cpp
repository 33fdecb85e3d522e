// SPDX-License-Identifier: Apache-2.0
// Copyright The hostwait authors
// The experiments: named once, few enough for their time, and over the whole table.
#include <set>

#include "probe/experiment.hpp"
#include "probe/runner.hpp"
#include "support/catch.hpp"

using namespace hostwait::probe;

TEST_CASE("every experiment has a name of its own and something to do") {
  std::set<std::string> seen;
  for (const experiment& e : experiments()) {
    INFO(e.id);
    CHECK(seen.insert(e.id).second);
    CHECK(find_experiment(e.id) == &e);
    CHECK(e.id.find('/') != e.id.npos);
    CHECK(e.id.find_first_of("\t\n,") == e.id.npos);
    CHECK(!e.call.empty());
    CHECK(e.make);
    CHECK(!e.busy.empty());
  }
  CHECK(find_experiment("no such thing") == nullptr);
}

TEST_CASE("the quick run is a small part, and the whole fits four minutes") {
  run_options quick;
  quick.quick = true;
  run_options full;
  CHECK(chosen(quick).size() * 4 < chosen(full).size());
  CHECK(chosen(quick).size() > 40);
  // 33 ms a measurement, three idle ones of a few ms, two processes of a second where fresh.
  double seconds = 0;
  for (const experiment* e : chosen(full))
    seconds += e->fresh ? 2.0 : 0.033 * static_cast<double>(e->busy.size()) + 0.01;
  CHECK(seconds < 180);
}

TEST_CASE("experiments are chosen by a part of their names") {
  run_options some;
  some.only = "mapping/cuMemUnmap";
  REQUIRE(chosen(some).size() == 1);
  some.only = "cotton";
  CHECK(chosen(some).empty());
}
