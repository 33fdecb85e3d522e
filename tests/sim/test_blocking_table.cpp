// SPDX-License-Identifier: Apache-2.0
// Copyright The hostwait authors
// Holds the simulated driver against the table measured on a real GPU: every row, with the driver
// calls that the runtime was seen to make, behind each of the four busy streams.
#include <fstream>
#include <map>
#include <sstream>
#include <string>
#include <vector>

#include "blocking_calls.hpp"
#include "sim_test.hpp"

namespace {

struct row {
  std::string call, busy_stream;
  bool blocked;
};

std::vector<row> read_table() {
  std::ifstream file(HOSTWAIT_SIM_TABLE);
  REQUIRE(file);
  std::vector<row> rows;
  std::string line;
  std::getline(file, line);  // the file has CR LF line ends
  REQUIRE(line.substr(0, line.find('\r')) == "call,busy_stream,ms_in_call,host_blocked");
  while (std::getline(file, line)) {
    std::istringstream fields(line);
    row r;
    std::string milliseconds, blocked;
    std::getline(fields, r.call, ',');
    std::getline(fields, r.busy_stream, ',');
    std::getline(fields, milliseconds, ',');
    std::getline(fields, blocked, '\r');
    REQUIRE((blocked == "yes" || blocked == "no"));
    r.blocked = blocked == "yes";
    rows.push_back(r);
  }
  return rows;
}

}  // namespace

TEST_CASE("the host is stopped exactly where the table says") {
  sim_test::own_context context;
  blocking_calls calls;
  // cudaGetDeviceProperties makes no driver call: the runtime answers from what it read earlier.
  const std::map<std::string, int> not_expressible = {{"cudaGetDeviceProperties", 4}};
  std::map<std::string, int> skipped;
  std::vector<row> rows = read_table();
  REQUIRE(rows.size() == 880);
  int wrong = 0, stopped_rows = 0;
  for (const row& r : rows) {
    if (not_expressible.count(r.call)) {
      ++skipped[r.call];
      continue;
    }
    INFO(r.call << " behind " << r.busy_stream);
    const timed_call* timed = calls.find(r.call);
    REQUIRE(timed);
    CUstream busy = calls.busy(r.busy_stream);
    if (timed->before) timed->before(busy);
    SIM_OK(cuCtxSynchronize());
    bool stopped = sim_test::host_stops_behind(busy, [&] { timed->call(busy); });
    SIM_OK(cuCtxSynchronize());
    if (timed->after) timed->after(busy);
    SIM_OK(cuCtxSynchronize());
    CHECK(stopped == r.blocked);
    wrong += stopped != r.blocked;
    stopped_rows += stopped;
  }
  CHECK(skipped == not_expressible);
  CHECK(wrong == 0);
  CHECK(stopped_rows == 365);
}
