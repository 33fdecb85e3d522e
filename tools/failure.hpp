// SPDX-License-Identifier: Apache-2.0
// Copyright The hostwait authors
// How a command of the tool fails on purpose, and the exit codes (docs/exit-codes.md).
#pragma once

#include <exception>
#include <string>
#include <utility>

namespace hostwait {

enum exit_code {
  exit_fine = 0,
  exit_not_working = 1,  // doctor
  exit_usage = 2,        // wrong options, unreadable input
  exit_violations = 86,
  exit_unseen = 87,  // --require-cuda: no catalogued call, or a blind record
  exit_cannot_execute = 126,
  exit_not_found = 127,
};

// One line for the user: what is wrong, where, and the remedy.
class failure : public std::exception {
 public:
  failure(int status, std::string line) : status_(status), line_(std::move(line)) {}
  int status() const { return status_; }
  const char* what() const noexcept override { return line_.c_str(); }

 private:
  int status_;
  std::string line_;
};

}  // namespace hostwait
