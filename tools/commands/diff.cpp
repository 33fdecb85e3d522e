// SPDX-License-Identifier: Apache-2.0
// Copyright The hostwait authors
// hostwait diff A B: the findings of two runs by fingerprint. Counts decide, never times.
#include <fmt/core.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>

#include "command.hpp"
#include "commands/range.hpp"
#include "failure.hpp"
#include "folders.hpp"
#include "log.hpp"
#include "report/escape.hpp"
#include "report/report.hpp"
#include "stdout.hpp"

namespace hostwait {

namespace {

using json = nlohmann::ordered_json;

struct arguments {
  std::string before, after, format = "text";
  double tolerance = 0;
};

// What is compared of a finding.
struct entry {
  std::string kind, call, where;
  std::uint64_t calls = 0, waited = 0, violations = 0, total_ns = 0, lines = 0;

  void add(const entry& other) {
    if (kind.empty()) {
      kind = other.kind;
      call = other.call;
      where = other.where;
    }
    calls += other.calls;
    waited += other.waited;
    violations += other.violations;
    total_ns += other.total_ns;
    lines += other.lines;
  }
};
using side = std::map<std::string, entry>;  // by fingerprint

side side_of(const run_report& report) {
  side result;
  for (const finding& each : report.findings) {
    result[each.fingerprint].add({kind_name(each.kind), each.runtime_call, where_of(each),
                                  each.sum.calls, each.sum.waited, each.sum.violations,
                                  each.sum.total_ns, each.lines.size()});
  }
  return result;
}

side side_of_json(const std::string& path, std::ifstream& file) {
  try {
    const json report = json::parse(file);
    if (report.at("schema") != "hostwait.report/1")
      throw failure(exit_usage, path + ": is no hostwait.report/1");
    const json& findings = report.at("findings");
    if (report.value("findings_total", findings.size()) != findings.size())
      throw failure(exit_usage, path +
                                    ": holds only the first findings; write it anew with "
                                    "hostwait report --format json --limit 0");
    side result;
    for (const json& each : findings) {
      result[each.at("fingerprint").get<std::string>()].add(
          {each.at("kind").get<std::string>(), each.at("runtime_call").get<std::string>(),
           each.value("where", ""), each.at("calls").get<std::uint64_t>(),
           each.at("waited").get<std::uint64_t>(), each.at("violations").get<std::uint64_t>(),
           each.at("ns").at("total").get<std::uint64_t>(), each.at("lines").size()});
    }
    return result;
  } catch (const json::exception& wrong) {
    throw failure(exit_usage, path + ": is no report: " + wrong.what());
  }
}

// A report in JSON, a record, or a folder of records.
side load_side(const std::string& path) {
  std::error_code ignored;
  if (!std::filesystem::is_directory(path, ignored)) {
    std::ifstream file(path, std::ios::binary);
    if (file && (file >> std::ws).peek() == '{') return side_of_json(path, file);
  }
  return side_of(make_report(load_named({path}), *make_dwarf_symbolizer()));
}

struct change {
  std::string fingerprint;
  const entry* before = nullptr;  // null: new
  const entry* after = nullptr;   // null: gone
  const entry& shown() const { return after != nullptr ? *after : *before; }
};

struct difference {
  std::vector<change> fresh, gone, grown;
  std::size_t unchanged = 0;  // or with fewer calls
};

difference compare(const side& before, const side& after, double tolerance) {
  difference result;
  for (const auto& [fingerprint, now] : after) {
    const auto then = before.find(fingerprint);
    if (then == before.end()) {
      result.fresh.push_back({fingerprint, nullptr, &now});
    } else if (static_cast<double>(now.calls) >
                   static_cast<double>(then->second.calls) * (1 + tolerance / 100) ||
               now.lines > then->second.lines) {
      result.grown.push_back({fingerprint, &then->second, &now});
    } else {
      ++result.unchanged;
    }
  }
  for (const auto& [fingerprint, then] : before)
    if (after.find(fingerprint) == after.end())
      result.gone.push_back({fingerprint, &then, nullptr});
  for (std::vector<change>* list : {&result.fresh, &result.gone, &result.grown}) {
    std::stable_sort(list->begin(), list->end(), [](const change& a, const change& b) {
      return a.shown().total_ns > b.shown().total_ns;
    });
  }
  return result;
}

json to_json(const entry* of) {
  if (of == nullptr) return nullptr;
  return {{"calls", of->calls},
          {"waited", of->waited},
          {"violations", of->violations},
          {"lines", of->lines},
          {"total_ns", of->total_ns}};
}

json to_json(const std::vector<change>& list) {
  json array = json::array();
  for (const change& each : list) {
    array.push_back({{"fingerprint", each.fingerprint},
                     {"kind", each.shown().kind},
                     {"runtime_call", each.shown().call},
                     {"where", each.shown().where},
                     {"before", to_json(each.before)},
                     {"after", to_json(each.after)}});
  }
  return array;
}

std::string as_json(const difference& of) {
  const json document = {{"schema", "hostwait.diff/1"},
                         {"new", to_json(of.fresh)},
                         {"gone", to_json(of.gone)},
                         {"grown", to_json(of.grown)},
                         {"unchanged", of.unchanged}};
  return document.dump(2, ' ', true, json::error_handler_t::replace) + '\n';
}

std::string as_text(const difference& of) {
  std::string text = fmt::format("hostwait: {} new, {} gone, {} grown, {} as before\n",
                                 of.fresh.size(), of.gone.size(), of.grown.size(), of.unchanged);
  const auto add = [&](const char* mark, const std::vector<change>& list) {
    for (const change& each : list) {
      const std::uint64_t before = each.before != nullptr ? each.before->calls : 0;
      const std::uint64_t after = each.after != nullptr ? each.after->calls : 0;
      text += fmt::format(" {:<5}  {}  {:<11}  calls {} -> {}  {} -> {}  {}  {}\n", mark,
                          each.fingerprint, each.shown().kind, before, after,
                          human_time(each.before != nullptr ? each.before->total_ns : 0),
                          human_time(each.after != nullptr ? each.after->total_ns : 0),
                          for_terminal(each.shown().call), for_terminal(each.shown().where));
    }
  };
  add("new", of.fresh);
  add("grown", of.grown);
  add("gone", of.gone);
  return text;
}

int diff_command(const arguments& given) {
  const side before = load_side(given.before), after = load_side(given.after);
  const difference result = compare(before, after, given.tolerance);
  const std::string text = given.format == "json" ? as_json(result) : as_text(result);
  print_stdout(text, "the comparison");
  return exit_fine;
}

}  // namespace

std::function<int()> add_diff(CLI::App& app, const program_line&) {
  auto given = std::make_shared<arguments>();
  app.add_option("before", given->before, "a report in JSON, a record or a folder of records")
      ->required();
  app.add_option("after", given->after, "the same of the later run")->required();
  app.add_option("--tolerance", given->tolerance, "percent of calls by which a finding may grow")
      ->check(number_between(0, 1e6));
  app.add_option("--format", given->format, "text or json")->check(CLI::IsMember({"text", "json"}));
  return [given] { return diff_command(*given); };
}

}  // namespace hostwait
