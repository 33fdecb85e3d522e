// SPDX-License-Identifier: Apache-2.0
// Copyright The hostwait authors
// The file behind the record: where it lies, how it is made and how it grows. No descriptor stays
// open between calls, and nothing is mapped that was not reserved before.
#pragma once

#include <cstddef>
#include <cstdint>

namespace hostwait::record {

std::size_t system_page_bytes() noexcept;

// Whether files of this statfs type may be mapped. A list of local file systems: on anything else,
// known as remote or not known at all, a lost server would stop the program or kill it by SIGBUS.
bool is_local_file_system(std::uint64_t magic) noexcept;

class live_file {
 public:
  // Makes the file and maps its first `bytes` (whole pages), zeroed. Tries `output_dir` if given,
  // then the live folders, then anonymous memory, and says one line on stderr when it could not do
  // as told. Null: not even memory could be had.
  void* create(const char* output_dir, std::size_t bytes) noexcept;
  // Adds `bytes` (whole pages) at the end and maps them. Null: no room, and nothing has changed.
  void* grow(std::size_t bytes, std::uint64_t* offset) noexcept;

  bool anonymous() const noexcept { return anonymous_; }
  std::uint64_t bytes() const noexcept { return bytes_; }
  const char* path() const noexcept { return path_; }
  // In a forked child: unmaps what is the parent's.
  void forget() noexcept;

 private:
  int create_in(const char* folder, std::size_t bytes) noexcept;
  void* keep(void* mapped, std::size_t bytes) noexcept;

  static constexpr unsigned max_mappings = 160;
  char path_[768]{};
  std::uint64_t device_ = 0, inode_ = 0, bytes_ = 0;
  bool anonymous_ = false;
  unsigned mapping_count_ = 0;
  struct {
    void* at;
    std::size_t bytes;
  } mappings_[max_mappings]{};
};

}  // namespace hostwait::record
