// SPDX-License-Identifier: Apache-2.0
// Copyright The hostwait authors
// Results as text for people and as CSV.
#include <fmt/core.h>

#include <algorithm>
#include <map>

#include "output.hpp"
#include "profile_writer.hpp"

namespace hostwait::probe {

namespace {

std::string quoted(const std::string& field) {
  if (field.find_first_of(",\"\n") == field.npos) return field;
  std::string out = "\"";
  for (char c : field) {
    if (c == '"') out += '"';
    out += c;
  }
  return out + '"';
}

std::string microseconds(std::uint64_t ns) {
  return fmt::format("{:.1f}", static_cast<double>(ns) / 1000);
}

std::string verdict_of(const result& r) {
  const std::string reason = name_of(r.verdict.reason);
  return name_of(r.verdict.verdict) + (reason.empty() ? "" : " (" + reason + ")");
}

std::string size_of(std::uint64_t bytes) {
  if (bytes == 0) return "-";
  if (bytes % (1u << 20) == 0) return std::to_string(bytes >> 20) + "M";
  if (bytes % 1024 == 0) return std::to_string(bytes >> 10) + "K";
  return std::to_string(bytes);
}

std::string memory_of(const result& r) {
  const bool from = r.source != HOSTWAIT_MEMORY_UNKNOWN;
  const bool to = r.destination != HOSTWAIT_MEMORY_UNKNOWN;
  if (from && to) return std::string(name_of(r.source)) + ">" + name_of(r.destination);
  return from ? name_of(r.source) : to ? name_of(r.destination) : "-";
}

// The rows of one experiment on one line: busy streams as columns. One of them was measured.
void experiment_line(std::string& text, const std::vector<const result*>& rows) {
  const auto told = std::find_if(rows.begin(), rows.end(),
                                 [](const result* r) { return r->what == outcome::measured; });
  const result& first = **told;
  static constexpr stream_kind columns[] = {stream_kind::legacy, stream_kind::blocking,
                                            stream_kind::nonblocking, stream_kind::per_thread};
  std::string cells;
  for (stream_kind column : columns) {
    const auto at =
        std::find_if(rows.begin(), rows.end(), [&](const result* r) { return r->busy == column; });
    std::string cell = "";
    if (at != rows.end()) {
      const result& r = **at;
      cell = r.what != outcome::measured ? name_of(r.what)
             : !r.returned.empty()       ? "error"
             : r.blocked                 ? "yes"
                                         : "no";
      if (r.agree == agreement::no) cell += "!";
      if (r.agree == agreement::depends) cell += "?";
    }
    cells += fmt::format(" {:>8}", cell);
  }
  text += fmt::format("{:<58} {:<18} {:>6} {:>9}{}  {}\n", first.id, memory_of(first),
                      size_of(first.facts.bytes), microseconds(first.idle_max_ns), cells,
                      verdict_of(first));
}

bool would_be_found(const result& r) {
  return r.verdict.verdict != HOSTWAIT_VERDICT_NONE;
}

std::vector<const result*> over_own_cost(const report& all) {
  std::vector<const result*> out;
  for (const result& r : all.rows)
    if (r.what == outcome::measured && r.busy == stream_kind::none && r.own_cost_known &&
        r.idle_max_ns > r.own_cost_ns)
      out.push_back(&r);
  return out;
}

}  // namespace

std::string to_csv(const report& all) {
  std::string text =
      "id,call,row,direction,source,destination,size,stream,capture,busy_stream,outcome,ns,idle_ns,"
      "idle_max_ns,own_cost_ns,blocked,verdict,reason,agree,returned,note\n";
  for (const result& r : all.rows)
    text +=
        fmt::format("{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{}\n",
                    quoted(r.id), quoted(r.call), r.symbol, name_of(r.verdict.direction),
                    name_of(r.source), name_of(r.destination), r.facts.bytes, name_of(r.own),
                    r.around.capture_open ? "open" : "-", name_of(r.busy), name_of(r.what), r.ns,
                    r.idle_ns, r.idle_max_ns, r.own_cost_known ? std::to_string(r.own_cost_ns) : "",
                    r.blocked ? "yes" : "no", name_of(r.verdict.verdict), name_of(r.verdict.reason),
                    name_of(r.agree), r.returned, quoted(r.note));
  for (const limit& l : all.limits)
    text += fmt::format("{},{},limit,,,,{},,,,{},,,,,,,,,,{}\n", quoted(l.id), quoted(l.what),
                        l.value, l.note.empty() ? "measured" : "unsupported",
                        quoted(l.unit + (l.note.empty() ? "" : ": " + l.note)));
  return text;
}

std::string to_text(const report& all) {
  std::string text = fmt::format(
      "{}{}, compute capability {}.{}, CUDA {}.{}\n"
      "Host stopped while a kernel ran on the stream of the column: yes, no; ! the verdict was "
      "wrong, "
      "? it depends\n\n",
      all.device, all.simulated ? " (simulated driver)" : "", all.compute_capability / 10,
      all.compute_capability % 10, all.driver_version / 1000, all.driver_version % 1000 / 10);
  text +=
      fmt::format("{:<58} {:<18} {:>6} {:>9} {:>8} {:>8} {:>8} {:>8}  {}\n", "experiment", "memory",
                  "size", "idle us", "legacy", "blocking", "nonblock", "perthrd", "verdict");
  std::map<std::string, std::vector<const result*>> by_id;
  std::vector<std::string> order;
  for (const result& r : all.rows) {
    if (by_id[r.id].empty()) order.push_back(r.id);
    by_id[r.id].push_back(&r);
  }
  std::string missing;
  for (const std::string& id : order) {
    const auto& rows = by_id[id];
    const bool any = std::any_of(rows.begin(), rows.end(),
                                 [](const result* r) { return r->what == outcome::measured; });
    if (any) experiment_line(text, rows);
    for (const result* r : rows)
      if (r->what != outcome::measured)
        missing += fmt::format("{:<58} {:<12} {} ({})\n", r->id, name_of(r->busy), name_of(r->what),
                               r->note);
  }
  if (!all.limits.empty()) text += "\nlimits\n";
  for (const limit& l : all.limits)
    text += l.note.empty() ? fmt::format("{:<58} {} {}: {}\n", l.id, l.value, l.unit, l.what)
                           : fmt::format("{:<58} not found ({}): {}\n", l.id, l.note, l.what);
  const std::string unruled = without_rule(all);
  if (!unruled.empty()) text += "\nno rule yet; as a profile would say it\n" + unruled;
  if (!missing.empty()) text += "\nnot measured\n" + missing;
  return text;
}

std::string to_ending(const report& all) {
  std::string text;
  for (const result& r : all.rows)
    if (r.agree == agreement::no)
      text += fmt::format(
          "wrong: {} on {}: the host was {}, the verdict said {} ({} us inside, {} idle)\n", r.id,
          name_of(r.busy), r.blocked ? "stopped" : "not stopped", verdict_of(r), microseconds(r.ns),
          microseconds(r.idle_ns));
  const auto over = over_own_cost(all);
  std::uint64_t base = 20'000;
  unsigned found = 0;
  for (const result* r : over) {
    text += fmt::format("idle: {} took {} us, own cost {} us{}\n", r->id,
                        microseconds(r->idle_max_ns), microseconds(r->own_cost_ns),
                        would_be_found(*r) ? "" : " (verdict none: held, not waited)");
    found += would_be_found(*r);
    base = std::max(base, 120'000 + r->idle_max_ns - r->own_cost_ns);
  }
  text += fmt::format("idle: {} rows over their own cost", over.size());
  if (!over.empty())
    text += fmt::format("; {} would become waited; a base of {} us covers all", found,
                        (base + 999) / 1000);
  const summary s = summarize(all);
  text += fmt::format("\nnot measured: {} unsupported, {} failed, {} skipped\n", s.unsupported,
                      s.failed, s.skipped);
  text += fmt::format("probe: {} experiments, {} verdicts agree, {} depend, {} wrong\n",
                      s.experiments, s.agree, s.depend, s.wrong);
  return text;
}

}  // namespace hostwait::probe
