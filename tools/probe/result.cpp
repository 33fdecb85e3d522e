// SPDX-License-Identifier: Apache-2.0
// Copyright The hostwait authors
#include "result.hpp"

#include <nlohmann/json.hpp>

namespace hostwait::probe {

using json = nlohmann::ordered_json;

namespace {

template <class Enum>
struct names;
#define HW_NAMES(type, ...)                              \
  template <>                                            \
  struct names<type> {                                   \
    static constexpr const char* list[] = {__VA_ARGS__}; \
  };
HW_NAMES(stream_kind, "-", "legacy", "blocking", "nonblocking", "per_thread", "other_blocking",
         "other_nonblocking")
HW_NAMES(outcome, "measured", "unsupported", "hung", "crashed", "skipped")
HW_NAMES(agreement, "yes", "no", "depends", "-")
HW_NAMES(hostwait_verdict, "none", "stream", "legacy", "context", "depends", "unmeasured")
HW_NAMES(hostwait_reason, "", "staging_limit", "queue_depth", "lazy_load", "unmeasured", "capture",
         "graph_nodes")
HW_NAMES(hostwait_memory, "-", "pageable", "pinned", "device", "managed", "array", "pool")
HW_NAMES(hostwait_direction, "-", "H2D", "D2H", "D2D", "H2H")
HW_NAMES(declared, "-", "host", "device", "unified", "array")
#undef HW_NAMES

template <class Enum>
const char* name_in(Enum value) {
  const auto i = static_cast<std::size_t>(value);
  return i < std::size(names<Enum>::list) ? names<Enum>::list[i] : "?";
}

template <class Enum>
bool find_in(const std::string& name, Enum& out) {
  for (std::size_t i = 0; i < std::size(names<Enum>::list); ++i)
    if (name == names<Enum>::list[i]) {
      out = static_cast<Enum>(i);
      return true;
    }
  return false;
}

template <class Enum>
void take(const json& from, const char* key, Enum& out) {
  if (from.contains(key)) find_in(from.at(key).get<std::string>(), out);
}
template <class Value>
void get(const json& from, const char* key, Value& out) {
  if (from.contains(key)) out = from.at(key).get<Value>();
}

json of_facts(const call_facts& f) {
  return {{"source", name_in(f.source.as)},
          {"source_null", f.source.address == nullptr},
          {"destination", name_in(f.destination.as)},
          {"destination_null", f.destination.address == nullptr},
          {"bytes", f.bytes},
          {"stream", f.stream},
          {"has_stream", f.has_stream},
          {"per_thread", f.per_thread},
          {"two_dimensional", f.two_dimensional},
          {"aux", f.aux},
          {"aux2", f.aux2}};
}

// Addresses mean nothing later; the rules read only whether they are null.
call_facts facts_of(const json& from) {
  static const char somewhere = 0;
  call_facts f;
  take(from, "source", f.source.as);
  take(from, "destination", f.destination.as);
  f.source.address = from.value("source_null", true) ? nullptr : &somewhere;
  f.destination.address = from.value("destination_null", true) ? nullptr : &somewhere;
  get(from, "bytes", f.bytes);
  get(from, "stream", f.stream);
  get(from, "has_stream", f.has_stream);
  get(from, "per_thread", f.per_thread);
  get(from, "two_dimensional", f.two_dimensional);
  get(from, "aux", f.aux);
  get(from, "aux2", f.aux2);
  return f;
}

json of(const result& r) {
  json out = {{"id", r.id},
              {"call", r.call},
              {"row", r.symbol},
              {"in_table", r.in_table},
              {"direction", name_in(r.verdict.direction)},
              {"source", name_in(r.source)},
              {"destination", name_in(r.destination)},
              {"size", r.facts.bytes},
              {"stream", name_in(r.own)},
              {"capture", r.around.capture_open},
              {"busy", name_in(r.busy)},
              {"outcome", name_in(r.what)},
              {"ns", r.ns},
              {"idle_ns", r.idle_ns},
              {"idle_max_ns", r.idle_max_ns},
              {"own_cost_ns", r.own_cost_known ? json(r.own_cost_ns) : json(nullptr)},
              {"kernel_ns", r.spin_ns},
              {"blocked", r.blocked},
              {"verdict", name_in(r.verdict.verdict)},
              {"reason", name_in(r.verdict.reason)},
              {"agree", name_in(r.agree)},
              {"judged", r.judged}};
  if (!r.note.empty()) out["note"] = r.note;
  if (!r.returned.empty()) out["returned"] = r.returned;
  if (r.in_table) {
    out["facts"] = of_facts(r.facts);
    out["around"] = {{"capture_on_stream", r.around.capture_on_stream},
                     {"launch_blocking", r.around.launch_blocking},
                     {"new_function", r.around.new_function},
                     {"sync_memops", r.around.sync_memops},
                     {"queued", r.around.queued_since_idle}};
  }
  return out;
}

result result_of(const json& from) {
  result r;
  get(from, "id", r.id);
  get(from, "call", r.call);
  get(from, "row", r.symbol);
  get(from, "in_table", r.in_table);
  take(from, "direction", r.verdict.direction);
  take(from, "source", r.source);
  take(from, "destination", r.destination);
  take(from, "stream", r.own);
  get(from, "capture", r.around.capture_open);
  take(from, "busy", r.busy);
  take(from, "outcome", r.what);
  get(from, "ns", r.ns);
  get(from, "idle_ns", r.idle_ns);
  get(from, "idle_max_ns", r.idle_max_ns);
  r.own_cost_known = from.contains("own_cost_ns") && !from.at("own_cost_ns").is_null();
  if (r.own_cost_known) get(from, "own_cost_ns", r.own_cost_ns);
  get(from, "kernel_ns", r.spin_ns);
  get(from, "blocked", r.blocked);
  take(from, "verdict", r.verdict.verdict);
  take(from, "reason", r.verdict.reason);
  take(from, "agree", r.agree);
  get(from, "judged", r.judged);
  get(from, "note", r.note);
  get(from, "returned", r.returned);
  r.verdict.source = r.source;
  r.verdict.destination = r.destination;
  if (r.in_table) {
    r.facts = facts_of(from.at("facts"));
    get(from.at("around"), "capture_on_stream", r.around.capture_on_stream);
    get(from.at("around"), "launch_blocking", r.around.launch_blocking);
    get(from.at("around"), "new_function", r.around.new_function);
    get(from.at("around"), "sync_memops", r.around.sync_memops);
    get(from.at("around"), "queued", r.around.queued_since_idle);
  }
  return r;
}

json of(const limit& l) {
  json out = {{"limit", l.id}, {"what", l.what}, {"value", l.value}, {"unit", l.unit}};
  if (!l.note.empty()) out["note"] = l.note;
  return out;
}

limit limit_of(const json& from) {
  limit l;
  get(from, "limit", l.id);
  get(from, "what", l.what);
  get(from, "value", l.value);
  get(from, "unit", l.unit);
  get(from, "note", l.note);
  return l;
}

json of(const summary& s) {
  return {{"experiments", s.experiments}, {"agree", s.agree},
          {"depend", s.depend},           {"wrong", s.wrong},
          {"failed", s.failed},           {"unsupported", s.unsupported},
          {"skipped", s.skipped}};
}

}  // namespace

const char* name_of(stream_kind v) {
  return name_in(v);
}
const char* name_of(outcome v) {
  return name_in(v);
}
const char* name_of(agreement v) {
  return name_in(v);
}
const char* name_of(hostwait_verdict v) {
  return name_in(v);
}
const char* name_of(hostwait_reason v) {
  return name_in(v);
}
const char* name_of(hostwait_memory v) {
  return name_in(v);
}
const char* name_of(hostwait_direction v) {
  return name_in(v);
}

bool stream_named(const std::string& name, stream_kind& out) {
  return find_in(name, out);
}

void compare(result& r) {
  r.agree = agreement::unjudged;
  if (!r.judged || r.what != outcome::measured || r.busy == stream_kind::none ||
      !r.returned.empty())
    return;
  const prediction p = predict(r.verdict, r.own, r.busy);
  if (p == prediction::depends)
    r.agree = agreement::depends;
  else
    r.agree = (p == prediction::blocked) == r.blocked ? agreement::yes : agreement::no;
}

void judge_again(result& r) {
  r.verdict = {};
  if (r.in_table) {
    unsigned row = 0;
    while (row < row_count && r.symbol != rows[row].symbol) ++row;
    if (row == row_count) {
      r.in_table = false;  // no longer wrapped: then it waits for nothing
    } else {
      const auto id = static_cast<row_id>(row);
      const pointer_needs needs = needs_of(id, r.facts);
      r.verdict = classify(id, r.facts, needs.source ? r.source : HOSTWAIT_MEMORY_UNKNOWN,
                           needs.destination ? r.destination : HOSTWAIT_MEMORY_UNKNOWN, r.around);
      r.own_cost_ns = own_cost_ns(id, r.facts, 120, 1, touches_managed(r.verdict));
      r.own_cost_known = own_cost_known(id) && rows[id].type == row_type::wait;
    }
  } else {
    // A call that was not wrapped when it was measured may be by now, but its facts were not kept.
    for (const row_info& row : rows)
      if (r.symbol == row.symbol) r.judged = false;
  }
  compare(r);
}

summary summarize(const report& all) {
  summary s;
  for (const result& r : all.rows) {
    s.unsupported += r.what == outcome::unsupported;
    s.failed += r.what == outcome::hung || r.what == outcome::crashed;
    s.skipped += r.what == outcome::skipped;
    s.agree += r.agree == agreement::yes;
    s.depend += r.agree == agreement::depends;
    s.wrong += r.agree == agreement::no;
  }
  s.experiments = s.agree + s.depend + s.wrong;
  return s;
}

std::string to_line(const result& r) {
  return of(r).dump();
}
std::string to_line(const limit& l) {
  return of(l).dump();
}

bool from_line(const std::string& line, result& r, bool& is_limit, limit& l) {
  const json parsed = json::parse(line, nullptr, false);
  if (!parsed.is_object()) return false;
  is_limit = parsed.contains("limit");
  if (is_limit)
    l = limit_of(parsed);
  else if (parsed.contains("id"))
    r = result_of(parsed);
  else
    return false;
  return true;
}

std::string to_json(const report& all) {
  json out = {{"schema", "hostwait.probe/1"},
              {"device", all.device},
              {"compute_capability", all.compute_capability},
              {"driver_version", all.driver_version},
              {"driver", all.driver_path},
              {"devices", all.devices},
              {"simulated", all.simulated},
              {"mode", all.mode},
              {"seconds", all.seconds},
              {"summary", of(summarize(all))}};
  out["limits"] = json::array();
  for (const limit& l : all.limits) out["limits"].push_back(of(l));
  // One row a line: these files are compared by people.
  std::string text = out.dump(1);
  text.resize(text.size() - 2);
  text += ",\n \"rows\": [";
  const char* between = "\n  ";
  for (const result& r : all.rows) {
    text += between + of(r).dump();
    between = ",\n  ";
  }
  return text + "\n ]\n}\n";
}

bool from_json(const std::string& text, report& all, std::string& why) {
  try {
    const json in = json::parse(text);
    if (in.at("schema") != "hostwait.probe/1") {
      why = "not of schema hostwait.probe/1";
      return false;
    }
    get(in, "device", all.device);
    get(in, "compute_capability", all.compute_capability);
    get(in, "driver_version", all.driver_version);
    get(in, "driver", all.driver_path);
    get(in, "devices", all.devices);
    get(in, "simulated", all.simulated);
    get(in, "mode", all.mode);
    for (const json& l : in.at("limits")) all.limits.push_back(limit_of(l));
    for (const json& row : in.at("rows")) {
      all.rows.push_back(result_of(row));
      all.rows.back().around.driver_version = all.driver_version;
      all.rows.back().around.compute_capability = all.compute_capability;
    }
  } catch (const json::exception& wrong) {
    why = wrong.what();
    return false;
  }
  return true;
}

}  // namespace hostwait::probe
