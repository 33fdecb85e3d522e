// SPDX-License-Identifier: Apache-2.0
// Copyright The hostwait authors
// Starts the program in this process group, passes signals on, and waits for its end.
#pragma once

#include <string>
#include <utility>
#include <vector>

namespace hostwait {

// 32 hex digits, for HOSTWAIT_RUN_ID. Throws failure (2).
std::string random_run_id();

// As a shell finds it. Throws failure: 127 not there, 126 there but not executable.
std::string find_program(const std::string& word);

// Environment of the child: ours with these set.
using environment_changes = std::vector<std::pair<std::string, std::string>>;

// Runs it to its end and returns the wait status. A job-control stop of the child stops this
// process too, so that a shell sees it. Throws failure (126, 127) when it cannot be started.
int run_child(const std::string& path, const std::vector<std::string>& words,
              const environment_changes& changes);

// Ends this process as `wait_status` says: with its exit status or by its signal, without a second
// core file.
[[noreturn]] void end_as(int wait_status);

// Why a program may have been out of reach for a preload: "" where nothing speaks for it.
std::string why_unreachable(const std::string& path);

}  // namespace hostwait
