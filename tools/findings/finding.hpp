// SPDX-License-Identifier: Apache-2.0
// Copyright The hostwait authors
// What a report is made of: findings merged from the records of one run.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "record/reader.hpp"
#include "symbols/symbolizer.hpp"

namespace hostwait {

struct tally {
  std::uint64_t calls = 0, waited = 0, latent = 0, refused = 0, held = 0, violations = 0;
  std::uint64_t total_ns = 0, max_ns = 0, waited_ns = 0;
  std::array<std::uint64_t, 32> histogram{};
  // With gap=1: how long the thread then queued nothing, how often that was measured.
  std::uint64_t gap_ns = 0, gap_max_ns = 0, gaps = 0;

  void add(const tally& other);
  std::uint64_t audited = 0;  // not calls: orders that were opted out of

  bool is_finding() const { return (waited | latent | refused | held | violations | audited) != 0; }
};

// What one thread of one process has in a finding.
struct share {
  std::size_t process = 0;  // index into run_report::processes
  std::uint32_t tid = 0;    // 0: threads that have ended
  std::string thread;
  tally sum;
};

struct finding;

// The call on another thread that was in progress while calls of a finding were held up.
struct holding_call {
  std::string call, thread_name;
  std::uint32_t tid = 0;
  std::shared_ptr<const finding> site;  // null where its call site is not known
  std::uint64_t count = 0, total_ns = 0, max_ns = 0;
};

struct finding {
  std::string fingerprint;
  std::uint32_t kind = 0, verdict = 0, reason = 0, direction = 0;
  std::string call;          // driver symbols, joined by " + "
  std::string runtime_call;  // what the program's author wrote, joined by " + "
  tally sum;
  std::vector<python_frame> python;  // innermost first
  std::vector<native_frame> native;  // innermost first, CUDA's own layers cut
  std::string label, range;
  std::set<std::string> thread_names;
  std::set<std::uint32_t> lines;      // of the innermost user frame
  bool joined_wait = false;           // a copy, and the stream wait behind it
  bool other = false;                 // sites without room, or new while a lock was held
  std::vector<holding_call> held_by;  // most time first
  std::string stack_key;              // see merge.cpp
  std::vector<share> shares;
  std::uint64_t wall_ns = 0;  // wall time of the processes in it, added up; 0 = not known

  // Nothing but calls that had nothing to wait for this time.
  bool only_latent() const;
};

// A stream capture that a call broke, or would have broken, had it not been refused.
struct capture_side {
  std::string thread_name;
  std::uint32_t tid = 0;                // 0: not known
  std::shared_ptr<const finding> site;  // null where the call site is not known
};
struct broken_capture {
  capture_side begin, breaker;
  std::uint32_t mode = 0;  // CUstreamCaptureMode
  std::int32_t result = 0;
  bool refused = false, possible = false, on_stream = false;  // record.h says what they mean
  std::uint64_t count = 0, violations = 0;
  std::uint64_t open_ns = 0;  // from the begin to the break, the first time
};

struct hanging_call {
  std::uint32_t tid = 0;
  std::string thread_name, call;
  std::uint64_t ns = 0;    // so far; 0 = not known
  std::uint32_t site = 0;  // in the record, plus 1; 0 = not known
  finding at;              // its stack, label and range, where the site is known
};

struct process_info {
  std::string record, program, host, run_id;
  std::uint32_t pid = 0, ppid = 0;
  std::int32_t rank = -1, world = -1;
  bool sealed = false, alive = false, blind = false, full = false, config_error = false;
  std::uint64_t calls = 0;   // recorded and allowed
  std::uint64_t run_ns = 0;  // start to end; 0 = not known
  std::uint64_t start_real_ns = 0;
  std::uint32_t dropped_sites = 0;
  std::uint64_t mismatched_pops = 0, unseen_locks = 0;
  std::vector<hanging_call> hanging;
};

struct run_report {
  std::vector<process_info> processes;
  std::vector<finding> findings;         // most time first
  std::vector<broken_capture> captures;  // most frequent first
  std::set<std::string> why_blind;
  std::string driver;
  std::vector<std::string> routes;  // each once, in the order of the records
  std::set<std::string> notes;      // what stood in the way of names and Python frames
  std::uint64_t counted_only = 0;   // sites that were seen and never waited

  bool blind() const;
  bool full() const;
  bool config_error() const;
  std::uint64_t calls() const;
  std::uint64_t violations() const;
  std::uint64_t waited_ns() const;
};

run_report make_report(const std::vector<record_file>& records, symbolizer& symbols);

// First 16 hex digits over kind, driver base name, label, range, innermost library function and
// the three innermost user functions (docs/record.md).
std::string fingerprint_of(const finding& of);

// The innermost frame of a library that was called by user code, null where user code called CUDA
// itself; and the user's own frame.
const native_frame* library_frame(const finding& of);
const native_frame* user_frame(const finding& of);
const python_frame* user_python_frame(const finding& of);

// Whether the call was made by a thread that a library started: its whole stack, down to where
// threads begin, holds no frame of the program and none of Python. Which line of the program gave
// it that work is not known.
bool on_library_thread(const finding& of);

// "cuMemcpyHtoDAsync" of "cuMemcpyHtoDAsync_v2_ptsz".
std::string driver_base_name(const std::string& symbol);

// The runtime function behind a driver function, where the stack has no name for it; empty where
// none is known.
std::string runtime_name_of(const std::string& driver_base, std::uint32_t direction);

}  // namespace hostwait
