// SPDX-License-Identifier: Apache-2.0
// Copyright The hostwait authors
// Where the preloaded libraries are, and the LD_PRELOAD that brings them into a program.
#pragma once

#include <string>

namespace hostwait {

struct shim_libraries {
  std::string shim;      // libhostwait.so; "" = not found
  std::string link;      // libhostwait_link.so; "" = not found
  std::string selftest;  // libhostwait_selftest.so; "" = not found
  std::string searched;  // the folders that were tried, for the error
};

// Relative to this program: build tree (../lib), install (../lib/hostwait, ../lib64/hostwait,
// ../lib/<triplet>/hostwait), or the folder in HOSTWAIT_LIBDIR.
shim_libraries find_shim();

// A library path that the loader can take from LD_PRELOAD, where spaces and colons separate: such
// a path is reached through a link in a private folder, which the destructor removes.
class preload_path {
 public:
  explicit preload_path(const std::string& library);
  preload_path(const preload_path&) = delete;
  preload_path& operator=(const preload_path&) = delete;
  ~preload_path();
  const std::string& text() const { return text_; }

 private:
  std::string text_, folder_;
};

// `mine` in front of `existing`, behind sanitizer runtimes, which must be first in the process.
// Entries that are among `mine` already are not repeated.
std::string combine_preloads(const std::string& existing, const std::string& mine);

// ASAN_OPTIONS with which a program that was built with AddressSanitizer starts although its
// runtime is not the first library. Which program of a run was built so, only that program knows.
std::string relaxed_asan_options(const std::string& existing);

}  // namespace hostwait
