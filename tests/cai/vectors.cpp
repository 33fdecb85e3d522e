// SPDX-License-Identifier: Apache-2.0
// Copyright The hostwait authors
// Every conformance vector through the C core: passed, or not expressible in C with a reason.
#include <fstream>
#include <map>

#include "cai/support/vector_run.hpp"
#include "support/catch.hpp"

namespace {

using cai_test::json;

json load(const std::string& name) {
  std::ifstream file(std::string(HOSTWAIT_CAI_VECTORS) + "/" + name);
  REQUIRE(file.good());
  return json::parse(file);
}

}  // namespace

TEST_CASE("every vector holds for the C core") {
  const json world = load("world.json");
  int vectors = 0, passed = 0;
  std::map<std::string, std::string> outside;  // id to reason, where no case is expressible
  for (const char group : std::string("abcdefghijklmq")) {
    const json vectors_of_group = load(std::string(1, group) + ".json").at("vectors");
    for (const json& vector : vectors_of_group) {
      const std::string id = vector.at("id");
      ++vectors;
      int run = 0, failed = 0;
      std::string reason;
      for (const json& test_case : vector.at("cases")) {
        try {
          const std::string difference = cai_test::run_case(world, vector, test_case);
          ++run;
          INFO(id << " " << test_case.value("name", "") << " " << test_case.dump());
          if (!difference.empty()) ++failed;
          CHECK(difference == "");
        } catch (const cai_test::not_expressible& other) {
          reason = other.reason;
        }
      }
      if (run == 0) outside[id] = reason;
      if (run > 0 && failed == 0) ++passed;
    }
  }
  for (const auto& [id, reason] : outside) {
    WARN(id << " is not expressible in C: " << reason);
    CHECK_FALSE(reason.empty());
  }
  WARN(vectors << " vectors: " << passed << " passed, " << outside.size()
               << " not expressible in C");
  CHECK(vectors == 239);
  std::string ids;
  for (const auto& item : outside) ids += item.first + " ";
  CHECK(ids == "A08 A14 K09 K10 K11 M09 ");
  CHECK(passed + static_cast<int>(outside.size()) == vectors);
}
