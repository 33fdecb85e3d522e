// SPDX-License-Identifier: Apache-2.0
// Copyright The hostwait authors
// Where records lie: the live folders, folders and files named by the user.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "record/reader.hpp"

namespace hostwait {

// /dev/shm, $XDG_RUNTIME_DIR, /tmp: those that exist.
std::vector<std::string> live_folders();

// Records (hostwait-*.hwr) straight in a folder: regular files of this user, no links, sorted.
std::vector<std::string> records_in(const std::string& folder);

// Reads what the user named: files, and folders with all records in them. Throws failure (2) for
// the first that cannot be read, and for a folder without records.
std::vector<record_file> load_named(const std::vector<std::string>& names);

// Records in `folders` that bear this run id. Unreadable ones are skipped.
std::vector<record_file> records_of_run(const std::vector<std::string>& folders,
                                        const std::string& run_id);

// The records of each run, oldest run first. Records without a run id (a bare preload) belong
// together where one process is the parent of the other.
std::vector<std::vector<record_file>> group_by_run(std::vector<record_file> records);

// The newest run in the live folders and, since `run` moves records there, the current one. Throws
// failure (2) where there is none.
std::vector<record_file> newest_run();

// Moves a file into a folder, also across file systems; an existing file is never overwritten.
// Returns the new path; throws failure (2).
std::string move_into(const std::string& path, const std::string& folder);

}  // namespace hostwait
