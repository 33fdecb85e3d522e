// SPDX-License-Identifier: Apache-2.0
// Copyright The hostwait authors
// From records to findings: sums over threads and processes, one row for one cause.
#include <fmt/core.h>

#include <algorithm>
#include <map>
#include <unordered_map>

#include "finding.hpp"
#include "process.hpp"
#include "relations.hpp"

namespace hostwait {

namespace {

// Site identity without addresses, which differ between processes: modules with offsets.
std::string native_key(const record_file& record, std::uint32_t innermost) {
  std::string key;
  for (const hostwait_record_frame& frame : record.stack(innermost)) {
    const hostwait_record_module module = record.module(frame.module);
    key += record.string(module.path);
    key += fmt::format("+{:x}\n", frame.where - module.bias);
  }
  return key;
}

std::vector<python_frame> python_stack(const record_file& record, std::uint32_t innermost) {
  std::vector<python_frame> frames;
  for (const hostwait_record_frame& frame : record.stack(innermost)) {
    const auto code = record.python_code(static_cast<std::uint32_t>(frame.where >> 32));
    python_frame python;
    python.function = record.string(code.qualname);
    python.file = record.string(code.file);
    python.line = static_cast<std::uint32_t>(frame.where);
    python.library = is_python_library(python.file);
    frames.push_back(std::move(python));
  }
  return frames;
}

std::string python_key(const std::vector<python_frame>& frames) {
  std::string key;
  for (const python_frame& frame : frames)
    key += fmt::format("{}:{}:{}\n", frame.file, frame.line, frame.function);
  return key;
}

struct site_sum {
  tally sum;
  std::vector<share> shares;
};

// The counters of a site of gaps, which are no calls: they belong to the site of the calls.
tally gaps_of(const tally& counted) {
  tally gaps;
  gaps.gap_ns = counted.total_ns;
  gaps.gap_max_ns = counted.max_ns;
  for (const std::uint64_t bucket : counted.histogram) gaps.gaps += bucket;
  return gaps;
}

std::unordered_map<std::uint32_t, site_sum> sum_sites(const record_file& record) {
  std::unordered_map<std::uint32_t, site_sum> sites;
  record.for_each(HOSTWAIT_SECTION_COUNTERS, [&](std::uint32_t i) {
    const hostwait_record_counters counters = record.counters(i);
    if (counters.site == HOSTWAIT_COUNTERS_FREE ||
        !record.has_entry(HOSTWAIT_SECTION_SITES, counters.site))
      return;
    site_sum& into = sites[counters.site];
    tally one;
    one.calls = counters.calls;
    one.waited = counters.waited;
    one.latent = counters.latent;
    one.refused = counters.refused;
    one.held = counters.held;
    one.violations = counters.violations;
    one.total_ns = counters.total_ns;
    one.max_ns = counters.max_ns;
    one.waited_ns = counters.waited_ns;
    const hostwait_record_histogram histogram = record.histogram(i);
    std::copy(std::begin(histogram.bucket), std::end(histogram.bucket), one.histogram.begin());
    if ((record.site(counters.site).flags & HOSTWAIT_SITE_GAP) != 0) one = gaps_of(one);
    into.sum.add(one);
    const hostwait_record_thread thread = record.thread(counters.thread);
    share& part = into.shares.emplace_back();
    part.tid = thread.tid;
    part.thread = fixed_text(thread.name);
    part.sum = one;
  });
  return sites;
}

// A site without its counts and native names.
finding finding_of(const record_file& record, const hostwait_record_site& site) {
  const hostwait_record_call call = record.call(site.call);
  finding one;
  one.other = (site.flags & HOSTWAIT_SITE_OTHER) != 0;
  one.call = one.other ? "(other)" : std::string(record.string(call.name));
  one.kind = call.kind;
  one.verdict = site.verdict;
  one.reason = site.reason;
  one.direction = site.direction;
  one.python = python_stack(record, site.python);
  one.label = record.string(site.label);
  if (site.range != 0) one.range = record.string(record.range(site.range - 1).path);
  return one;
}

struct merged_site {
  const record_file* record = nullptr;
  hostwait_record_site site{};
  finding result;
};

void resolve_native(const record_file& record, std::uint32_t innermost, symbolizer& symbols,
                    finding& result) {
  std::vector<native_frame> frames;
  for (const hostwait_record_frame& frame : record.stack(innermost)) {
    const hostwait_record_module module = record.module(frame.module);
    for (native_frame& each :
         symbols.resolve(std::string(record.string(module.path)), module, frame.where))
      frames.push_back(std::move(each));
  }
  cut_stack cut = cut_top(std::move(frames));
  const std::string base = driver_base_name(result.call);
  result.runtime_call = std::move(cut.runtime_call);
  // Without a name, the call came through a runtime whose names were stripped, or may have.
  const bool nameless =
      cut.through_runtime || (!cut.frames.empty() && cut.frames.front().function.empty() &&
                              cut.frames.front().owner == frame_owner::user);
  if (result.runtime_call.empty() && nameless)
    result.runtime_call = runtime_name_of(base, result.direction);
  if (result.runtime_call.empty()) result.runtime_call = base;
  result.native = std::move(cut.frames);
}

// The library's function that user code or the interpreter called, null where user code called CUDA
// itself. Not the innermost one: CuPy's get() copies and waits in two functions further in.
const native_frame* library_entry(const finding& of) {
  const native_frame* entry = nullptr;
  for (const native_frame& frame : of.native) {
    if (frame.owner == frame_owner::user || frame.owner == frame_owner::interpreter) break;
    if (frame.owner == frame_owner::library) entry = &frame;
  }
  return entry;
}

// Findings with the same key follow from the same place in the user's code: the same user frames,
// the library function that they called, Python stack, label and range. Empty where no stack was
// taken.
std::string stack_key(const finding& of) {
  if (of.native.empty() && of.python.empty()) return "";
  std::string key = of.label + '\0' + of.range + '\0' + python_key(of.python);
  const native_frame* library = library_entry(of);
  if (library != nullptr) key += library->module + ':' + library->name();
  for (const native_frame& frame : of.native) {
    if (frame.owner == frame_owner::user && !frame.inlined)
      key += fmt::format("\n{}+{:x}", frame.module, frame.offset);
  }
  return key;
}

bool is_copy(const finding& of) {
  return of.kind == HOSTWAIT_KIND_COPY || of.kind == HOSTWAIT_KIND_ASYNC_COPY ||
         of.kind == HOSTWAIT_KIND_MEMSET;
}

// "StreamSynchronize" of "cudaStreamSynchronize".
std::string without_prefix(const std::string& name) {
  if (name.starts_with("cuda")) return name.substr(4);
  return name.starts_with("cu") ? name.substr(2) : name;
}

// One pass of the program makes both calls, so the sum counts passes: the larger of the two.
void join(tally& sum, const tally& wait) {
  sum.calls = std::max(sum.calls, wait.calls);
  sum.waited = std::max(sum.waited, wait.waited);
  sum.refused = std::max(sum.refused, wait.refused);
  // A pass in which either call waited has waited.
  sum.latent = std::min(std::max(sum.latent, wait.latent),
                        sum.calls - std::min(sum.calls, sum.waited + sum.refused));
  sum.held = std::max(sum.held, wait.held);
  sum.violations += wait.violations;
  sum.total_ns += wait.total_ns;
  sum.waited_ns += wait.waited_ns;
  sum.max_ns = std::max(sum.max_ns, wait.max_ns);
  sum.gap_ns += wait.gap_ns;
  sum.gaps = std::max(sum.gaps, wait.gaps);
  sum.gap_max_ns = std::max(sum.gap_max_ns, wait.gap_max_ns);
  for (std::size_t i = 0; i < sum.histogram.size(); ++i) sum.histogram[i] += wait.histogram[i];
}

// A copy and the wait for its stream are one cause and become one row with two calls.
void join(finding& copy, const finding& wait) {
  copy.joined_wait = true;
  copy.call += " + " + wait.call;
  copy.runtime_call += " + " + without_prefix(wait.runtime_call);
  join(copy.sum, wait.sum);
  for (const share& part : wait.shares) {
    const auto same = std::find_if(copy.shares.begin(), copy.shares.end(), [&](const share& each) {
      return each.process == part.process && each.tid == part.tid;
    });
    if (same == copy.shares.end()) {
      copy.shares.push_back(part);
    } else {
      join(same->sum, part.sum);
    }
  }
  copy.thread_names.insert(wait.thread_names.begin(), wait.thread_names.end());
  add_holders(wait.held_by, copy.held_by);
}

void join_pairs(std::vector<finding>& findings) {
  std::map<std::string, finding*> copies;
  for (finding& each : findings) {
    if (!is_copy(each) || each.stack_key.empty()) continue;
    finding*& best = copies[each.stack_key];
    if (best == nullptr || each.sum.total_ns > best->sum.total_ns) best = &each;
  }
  std::set<const finding*> joined;
  for (finding& each : findings) {
    if (each.kind != HOSTWAIT_KIND_STREAM_SYNC || each.stack_key.empty()) continue;
    const auto copy = copies.find(each.stack_key);
    if (copy == copies.end() || copy->second->joined_wait) continue;
    join(*copy->second, each);
    joined.insert(&each);
  }
  std::vector<finding> rest;
  for (finding& each : findings) {
    if (joined.count(&each) == 0) rest.push_back(std::move(each));
  }
  findings = std::move(rest);
}

// Of the processes that have a share in it; 0 where the end of one is not known.
std::uint64_t wall_time(const run_report& report, const finding& of) {
  std::set<std::size_t> processes;
  for (const share& part : of.shares) processes.insert(part.process);
  std::uint64_t sum = 0;
  for (const std::size_t each : processes) {
    if (report.processes[each].run_ns == 0) return 0;
    sum += report.processes[each].run_ns;
  }
  return sum;
}

// Sites by number, with names: what two-thread relations point to.
site_finder finder_in(const record_file& record, symbolizer& symbols) {
  return [&](std::uint32_t index) -> std::shared_ptr<const finding> {
    if (!record.has_entry(HOSTWAIT_SECTION_SITES, index)) return nullptr;
    const hostwait_record_site site = record.site(index);
    auto one = std::make_shared<finding>(finding_of(record, site));
    if (one->other) return nullptr;
    resolve_native(record, site.native, symbols, *one);
    one->fingerprint = fingerprint_of(*one);
    return one;
  };
}

void set_lines(finding& of) {
  if (const python_frame* python = user_python_frame(of)) {
    if (python->line != 0) of.lines.insert(python->line);
  } else if (const native_frame* native = user_frame(of)) {
    if (native->line != 0) of.lines.insert(native->line);
  }
}

}  // namespace

void tally::add(const tally& other) {
  calls += other.calls;
  waited += other.waited;
  latent += other.latent;
  refused += other.refused;
  held += other.held;
  violations += other.violations;
  total_ns += other.total_ns;
  waited_ns += other.waited_ns;
  audited += other.audited;
  gap_ns += other.gap_ns;
  gaps += other.gaps;
  gap_max_ns = std::max(gap_max_ns, other.gap_max_ns);
  max_ns = std::max(max_ns, other.max_ns);
  for (std::size_t i = 0; i < histogram.size(); ++i) histogram[i] += other.histogram[i];
}

bool finding::only_latent() const {
  return sum.latent != 0 && (sum.waited | sum.refused | sum.held | sum.violations) == 0 &&
         sum.audited == 0;
}

bool run_report::blind() const {
  return std::any_of(processes.begin(), processes.end(), [](auto& each) { return each.blind; });
}
bool run_report::full() const {
  return std::any_of(processes.begin(), processes.end(), [](auto& each) { return each.full; });
}
bool run_report::config_error() const {
  return std::any_of(processes.begin(), processes.end(),
                     [](auto& each) { return each.config_error; });
}
std::uint64_t run_report::calls() const {
  std::uint64_t sum = 0;
  for (const process_info& each : processes) sum += each.calls;
  return sum;
}
std::uint64_t run_report::violations() const {
  std::uint64_t sum = 0;
  for (const finding& each : findings) sum += each.sum.violations;
  return sum;
}
std::uint64_t run_report::waited_ns() const {
  std::uint64_t sum = 0;
  for (const finding& each : findings) sum += each.sum.waited_ns;
  return sum;
}

run_report make_report(const std::vector<record_file>& records, symbolizer& symbols) {
  run_report report;
  std::map<std::string, merged_site> merged;
  for (const record_file& record : records) {
    report.processes.push_back(describe_process(record, report));
    for (hanging_call& hanging : report.processes.back().hanging) {
      if (hanging.site == 0 || !record.has_entry(HOSTWAIT_SECTION_SITES, hanging.site - 1))
        continue;
      const hostwait_record_site site = record.site(hanging.site - 1);
      hanging.at = finding_of(record, site);
      if (!hanging.at.other) resolve_native(record, site.native, symbols, hanging.at);
    }
    const site_finder find_site = finder_in(record, symbols);
    std::unordered_map<std::uint32_t, std::vector<hostwait_record_holder>> holders;
    record.for_each(HOSTWAIT_SECTION_HOLDERS, [&](std::uint32_t i) {
      if (i >= HOSTWAIT_RECORD_MAX_RELATIONS) return;  // no writer has more
      const hostwait_record_holder entry = record.holder(i);
      holders[entry.site].push_back(entry);
    });
    for (const auto& [index, summed] : sum_sites(record)) {
      const hostwait_record_site site = record.site(index);
      finding one = finding_of(record, site);
      std::string key = fmt::format("{}|{}|{}|{}|", one.call, one.kind, one.verdict, one.reason);
      key += one.label + '|' + one.range + '|' + native_key(record, site.native) + '|' +
             python_key(one.python);
      merged_site& into = merged[key];
      if (into.record == nullptr) {
        into.record = &record;
        into.site = site;
        into.result = std::move(one);
      }
      into.result.sum.add(summed.sum);
      for (share part : summed.shares) {
        part.process = report.processes.size() - 1;
        if (!part.thread.empty()) into.result.thread_names.insert(part.thread);
        into.result.shares.push_back(std::move(part));
      }
      if ((site.flags & HOSTWAIT_SITE_AUDIT) != 0) into.result.sum.audited += summed.sum.calls;
      const auto held = holders.find(index);
      if (held == holders.end()) continue;
      for (const hostwait_record_holder& entry : held->second)
        add_holder(record, entry, find_site, into.result.held_by);
    }
    add_captures(record, find_site, report.captures);
  }
  std::stable_sort(report.captures.begin(), report.captures.end(),
                   [](const auto& a, const auto& b) { return a.count > b.count; });
  for (auto& [key, each] : merged) {
    if (!each.result.sum.is_finding()) {
      report.counted_only += each.result.sum.calls > 0 ? 1 : 0;
      continue;
    }
    if (each.result.other) {
      each.result.runtime_call = each.result.call;
    } else {
      resolve_native(*each.record, each.site.native, symbols, each.result);
      each.result.stack_key = stack_key(each.result);
    }
    report.findings.push_back(std::move(each.result));
  }
  join_pairs(report.findings);
  for (finding& each : report.findings) {
    set_lines(each);
    each.wall_ns = wall_time(report, each);
    each.fingerprint = fingerprint_of(each);
  }
  std::sort(report.findings.begin(), report.findings.end(), [](const auto& a, const auto& b) {
    return std::tie(b.sum.waited_ns, b.sum.total_ns, b.sum.refused, a.call, a.fingerprint,
                    a.stack_key) < std::tie(a.sum.waited_ns, a.sum.total_ns, a.sum.refused, b.call,
                                            b.fingerprint, b.stack_key);
  });
  report.notes.merge(symbols.notes());
  return report;
}

}  // namespace hostwait
