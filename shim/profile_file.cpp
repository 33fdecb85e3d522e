// SPDX-License-Identifier: Apache-2.0
// Copyright The hostwait authors
// Reading of a verdict profile.
#include "profile_file.hpp"

#include <atomic>

#include "record_text.hpp"
#include "sys.hpp"

namespace hostwait {

namespace {

verdict_profile the_profile;
std::atomic<bool> loaded{false};

constexpr std::size_t largest = 4u << 20;

}  // namespace

bool load_profile(const char* path, char* error, std::size_t error_bytes) noexcept {
  record::text<512> line;
  line << "profile " << path << ": ";
  const char* problem = "cannot be read: name a file written by hostwait probe --save";
  profile_problem where;
  struct stat info;
  const int fd = sys::open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY);
  if (fd >= 0) {
    void* bytes = nullptr;
    std::size_t size = 0;
    if (sys::fstat(fd, &info) == 0 && S_ISREG(info.st_mode) && info.st_size > 0 &&
        static_cast<std::size_t>(info.st_size) <= largest) {
      size = static_cast<std::size_t>(info.st_size);
      bytes = sys::mmap(nullptr, size, PROT_READ, MAP_PRIVATE, fd, 0);
    }
    sys::close(fd);
    if (bytes != nullptr) {
      const bool fine = the_profile.parse(static_cast<const char*>(bytes), size, where);
      sys::munmap(bytes, size);
      if (fine) {
        loaded.store(true, std::memory_order_release);
        return true;
      }
      problem = where.what;
      line << "line " << where.line << ": ";
    }
  }
  line << problem;
  std::size_t n = 0;
  for (; n + 1 < error_bytes && line.c_str()[n] != '\0'; ++n) error[n] = line.c_str()[n];
  error[n] = '\0';
  return false;
}

const verdict_profile* loaded_profile() noexcept {
  return loaded.load(std::memory_order_acquire) ? &the_profile : nullptr;
}

}  // namespace hostwait
