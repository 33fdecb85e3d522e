// SPDX-License-Identifier: Apache-2.0
// Copyright The hostwait authors
// What the record's tests share: a folder of their own, and processes that write a record in it.
// Each case runs the writer in a fresh child, since a process has one record in its life.
#pragma once

#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <functional>
#include <string>

#include "record.hpp"
#include "support/catch.hpp"
#include "support/record_reader.hpp"

namespace hostwait::test {

class folder {
 public:
  folder() {
    std::string pattern = (std::filesystem::temp_directory_path() / "hostwait-XXXXXX").string();
    if (mkdtemp(pattern.data()) == nullptr) throw std::runtime_error("mkdtemp");
    path = pattern;
  }
  ~folder() { std::filesystem::remove_all(path); }
  folder(const folder&) = delete;
  folder& operator=(const folder&) = delete;
  std::filesystem::path path;
};

// Runs `body` in a child and gives its wait status; its return value is the exit status.
inline int in_child(const std::function<int()>& body, pid_t* pid_out = nullptr) {
  pid_t pid = fork();
  if (pid == 0) _exit(body());
  if (pid_out != nullptr) *pid_out = pid;
  int status = 0;
  while (waitpid(pid, &status, 0) < 0) {
  }
  return status;
}

inline bool open_in(const std::filesystem::path& path, std::uint32_t max_sites = 0) {
  static std::string kept;  // the writer keeps the pointer
  kept = path.string();
  record::configure({kept.c_str(), max_sites, "level=log", false});
  return record::ensure_open();
}

inline record::site_key key_of(const std::uintptr_t* stack, std::uint32_t depth,
                               std::uint32_t python = 0, const char* label = "") {
  record::site_key key{};
  key.row = row_id{0};
  key.verdict.verdict = HOSTWAIT_VERDICT_CONTEXT;
  key.native = stack;
  key.native_depth = depth;
  key.python = python;
  key.label = label;
  return key;
}

// One call of the calling thread, from enter to note.
inline void one_call(const record::site_key& key, std::uint64_t ns = 100,
                     record::outcome what = record::outcome::waited) {
  if (!record::ensure_open()) return;
  record::thread_writer* writer = record::this_thread();
  record::enter(writer, key.row, {}, 1);
  record::leave(writer);
  record::note(writer, key, {what, false, ns});
}

}  // namespace hostwait::test
