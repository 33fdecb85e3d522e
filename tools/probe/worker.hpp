// SPDX-License-Identifier: Apache-2.0
// Copyright The hostwait authors
// The process that makes the calls. Its parent gives it jobs on standard input and watches it.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "predict.hpp"

namespace hostwait::probe {

// One line: id, streams, kernel time, idle time (0: to be measured first), separated by tabs.
struct job {
  std::string id;
  std::vector<stream_kind> busy;
  std::uint64_t spin_ns = 30'000'000;
  std::uint64_t idle_ns = 0;
  bool idle_only = false;
};
std::string to_line(const job&);
bool from_line(const std::string& line, job&);

// Reads jobs until the end of input; writes one JSON object a line to `out_fd`: first what device
// this is, then {"begin":id,"busy":stream} before and the result after each measurement. Ends with
// the process; the status is 0, 2 (no driver) or 3 (the context was lost: the rest needs another
// process).
[[noreturn]] void run_worker(int out_fd, int device);

// A process that owns device memory for experiments across processes: writes its handle to standard
// output and keeps the memory until its input ends.
int own_memory(int device);

}  // namespace hostwait::probe
