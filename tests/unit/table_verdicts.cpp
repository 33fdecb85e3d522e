// SPDX-License-Identifier: Apache-2.0
// Copyright The hostwait authors
// Holds the verdict rules against stored tables of measurements:
//   table_verdicts TABLE.csv... [--rows FILE]
// Prints what is wrong and ends with the line `probe: N experiments, ...`. Exit status 1 if a
// verdict is wrong, if more than one in twenty depends, or if FILE (a sorted list, one row a line,
// which the documentation calls measured) is not the set of rows that the tables exercise.
#include <cstdio>
#include <cstring>
#include <fstream>

#include "table_experiments.hpp"

int main(int argc, char** argv) {
  using namespace hostwait;
  std::vector<experiments::experiment> all;
  const char* rows_file = nullptr;
  for (int i = 1; i < argc; ++i) {
    if (std::strcmp(argv[i], "--rows") == 0 && i + 1 < argc) {
      rows_file = argv[++i];
      continue;
    }
    const auto table = experiments::read(argv[i]);
    all.insert(all.end(), table.begin(), table.end());
  }
  const experiments::tally t = experiments::run(
      all,
      [](row_id row, const call_facts& facts, hostwait_memory source, hostwait_memory destination,
         const surroundings& now) { return classify(row, facts, source, destination, now); });
  for (const std::string& complaint : t.complaints) std::printf("wrong: %s\n", complaint.c_str());
  bool passed = t.experiments > 0 && t.wrong == 0 && t.depend * 20 <= t.experiments;
  if (rows_file) {
    std::set<std::string> exercised, listed;
    for (row_id row : t.rows) exercised.insert(rows[row].symbol);
    std::ifstream file(rows_file);
    for (std::string line; std::getline(file, line);)
      if (!line.empty() && line[0] != '#') listed.insert(line);
    for (const std::string& name : exercised)
      if (!listed.count(name))
        std::printf("%s lacks %s\n", rows_file, name.c_str()), passed = false;
    for (const std::string& name : listed)
      if (!exercised.count(name))
        std::printf("%s: %s was not measured\n", rows_file, name.c_str()), passed = false;
  }
  std::printf("probe: %u experiments, %u verdicts agree, %u depend, %u wrong\n", t.experiments,
              t.agree, t.depend, t.wrong);
  return passed ? 0 : 1;
}
