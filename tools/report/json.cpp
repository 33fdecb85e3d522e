// SPDX-License-Identifier: Apache-2.0
// Copyright The hostwait authors
// The report as JSON, schema hostwait.report/1.
#include <algorithm>
#include <nlohmann/json.hpp>

#include "advice.hpp"
#include "findings/relations.hpp"
#include "groups.hpp"
#include "report.hpp"

namespace hostwait {

namespace {

using json = nlohmann::ordered_json;

json to_json(const hanging_call& call);
json to_json(const process_info& process);
json to_json(const finding& of);
json to_json(const group& of);
json to_json(const broken_capture& capture);
json to_json(const holding_call& holder);

json to_json(const python_frame& frame) {
  return {{"file", frame.file},
          {"line", frame.line},
          {"function", frame.function},
          {"library", frame.library}};
}

const char* owner_name(frame_owner owner) {
  static constexpr const char* names[] = {"own",         "driver",  "runtime", "system",
                                          "interpreter", "library", "user"};
  return names[static_cast<std::size_t>(owner)];
}

json to_json(const native_frame& frame) {
  return {{"function", frame.function},      {"file", frame.file},     {"line", frame.line},
          {"module", frame.module},          {"offset", frame.offset}, {"inlined", frame.inlined},
          {"owner", owner_name(frame.owner)}};
}

template <class range>
json array_of(const range& items) {
  json list = json::array();
  for (const auto& item : items) list.push_back(to_json(item));
  return list;
}

json to_json(const hanging_call& call) {
  const bool known = !call.at.call.empty();
  return {{"tid", call.tid},
          {"thread", call.thread_name},
          {"call", call.call},
          {"ns", call.ns},
          {"where", known ? where_of(call.at) : ""},
          {"stack", known ? stack_line(call.at) : ""}};
}

json to_json(const group& of) {
  return {
      {"name", of.name},         {"findings", of.findings},         {"calls", of.sum.calls},
      {"waited", of.sum.waited}, {"latent", of.sum.latent},         {"refused", of.sum.refused},
      {"held", of.sum.held},     {"violations", of.sum.violations}, {"total_ns", of.sum.total_ns},
      {"max_ns", of.sum.max_ns}, {"waited_ns", of.sum.waited_ns},   {"wall_ns", of.wall_ns}};
}

// Where a call was made; empty members where that is not known.
json place_of(const std::shared_ptr<const finding>& site) {
  static const finding nowhere;
  const finding& at = site ? *site : nowhere;
  return {{"call", at.call},
          {"runtime_call", at.runtime_call},
          {"fingerprint", at.fingerprint},
          {"python", array_of(at.python)},
          {"native", array_of(at.native)},
          {"where", site ? where_of(at) : ""}};
}

json to_json(const capture_side& side) {
  json out = place_of(side.site);
  out["thread"] = side.thread_name;
  out["tid"] = side.tid;
  return out;
}

json to_json(const broken_capture& capture) {
  return {{"begin", to_json(capture.begin)},
          {"broken_by", to_json(capture.breaker)},
          {"mode", capture_mode_name(capture.mode)},
          {"result", capture.result},
          {"refused", capture.refused},
          {"possible", capture.possible},
          {"on_stream", capture.on_stream},
          {"count", capture.count},
          {"violations", capture.violations},
          {"open_ns", capture.open_ns}};
}

json to_json(const holding_call& holder) {
  json out = place_of(holder.site);
  out["call"] = holder.call;
  out["thread"] = holder.thread_name;
  out["tid"] = holder.tid;
  out["count"] = holder.count;
  out["ns"] = {{"total", holder.total_ns}, {"max", holder.max_ns}};
  return out;
}

json to_json(const process_info& process) {
  return {{"record", process.record},
          {"program", process.program},
          {"host", process.host},
          {"run_id", process.run_id},
          {"pid", process.pid},
          {"ppid", process.ppid},
          {"rank", process.rank},
          {"world", process.world},
          {"state", process.alive    ? "running"
                    : process.sealed ? "sealed"
                                     : "unsealed"},
          {"blind", process.blind},
          {"full", process.full},
          {"config_error", process.config_error},
          {"calls", process.calls},
          {"run_ns", process.run_ns},
          {"start_real_ns", process.start_real_ns},
          {"dropped_sites", process.dropped_sites},
          {"mismatched_pops", process.mismatched_pops},
          {"in_call", array_of(process.hanging)}};
}

json to_json(const finding& of) {
  return {{"fingerprint", of.fingerprint},
          {"kind", kind_name(of.kind)},
          {"call", of.call},
          {"runtime_call", of.runtime_call},
          {"verdict", verdict_name(of.verdict)},
          {"reason", reason_name(of.reason)},
          {"calls", of.sum.calls},
          {"waited", of.sum.waited},
          {"latent", of.sum.latent},
          {"refused", of.sum.refused},
          {"held", of.sum.held},
          {"violations", of.sum.violations},
          {"ns",
           {{"total", of.sum.total_ns},
            {"waited", of.sum.waited_ns},
            {"max", of.sum.max_ns},
            {"histogram", of.sum.histogram}}},
          {"cost",
           {{"waited_ns", of.sum.waited_ns},
            {"wall_ns", of.wall_ns},
            {"gap_ns", of.sum.gap_ns},
            {"gap_max_ns", of.sum.gap_max_ns},
            {"gaps", of.sum.gaps}}},
          {"would_wait", of.only_latent()},
          {"advice", {{"anchor", advice_for(of).anchor}, {"text", advice_for(of).sentence}}},
          {"python", array_of(of.python)},
          {"native", array_of(of.native)},
          {"label", of.label},
          {"range", of.range},
          {"thread_names", of.thread_names},
          {"lines", of.lines},
          {"held_by", array_of(of.held_by)},
          {"where", where_of(of)}};
}

// The blind spots that are catalogued calls with a pointer no row knows; the shim's own words.
std::vector<std::string> unmapped_of(const std::set<std::string>& why) {
  std::vector<std::string> lines;
  std::copy_if(why.begin(), why.end(), std::back_inserter(lines), [](const std::string& line) {
    return line.find("look-ups gave an unknown function") != line.npos;
  });
  return lines;
}

}  // namespace

std::string json_report(const run_report& report, std::size_t limit, grouping by) {
  const std::size_t shown =
      limit == 0 ? report.findings.size() : std::min(limit, report.findings.size());
  json document = {{"schema", "hostwait.report/1"},
                   {"coverage",
                    {{"blind", report.blind()},
                     {"full", report.full()},
                     {"why", report.why_blind},
                     {"unmapped", unmapped_of(report.why_blind)},
                     {"driver", report.driver},
                     {"routes", report.routes},
                     {"calls", report.calls()}}},
                   {"processes", array_of(report.processes)},
                   {"findings", array_of(std::vector<finding>(
                                    report.findings.begin(),
                                    report.findings.begin() + static_cast<std::ptrdiff_t>(shown)))},
                   {"findings_total", report.findings.size()},
                   {"captures", array_of(report.captures)},
                   {"notes", report.notes}};
  if (by != grouping::finding) {
    std::vector<group> groups = group_by(report, by);
    document["by"] = grouping_name(by);
    document["groups_total"] = groups.size();
    if (limit != 0 && groups.size() > limit) groups.resize(limit);
    document["groups"] = array_of(groups);
  }
  // ASCII only: what a terminal could misread is escaped; bytes that are no UTF-8 are replaced.
  return document.dump(2, ' ', true, json::error_handler_t::replace) + '\n';
}

}  // namespace hostwait
