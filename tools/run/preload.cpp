// SPDX-License-Identifier: Apache-2.0
// Copyright The hostwait authors
// LD_PRELOAD, composed.
#include "preload.hpp"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <vector>

#include "failure.hpp"
#include "symbols/frames.hpp"

namespace hostwait {

namespace fs = std::filesystem;

namespace {

std::vector<std::string> split_preload(const std::string& text) {
  std::vector<std::string> parts;
  std::string part;
  for (const char c : text + ' ') {
    if (c != ' ' && c != ':') {
      part += c;
    } else if (!part.empty()) {
      parts.push_back(std::move(part));
      part.clear();
    }
  }
  return parts;
}

bool is_sanitizer(const std::string& path) {
  const std::string base = base_name(path);
  constexpr std::array prefixes = {"libasan.", "libtsan.",   "liblsan.",    "libubsan.",
                                   "libmsan.", "libhwasan.", "libclang_rt."};
  return std::any_of(prefixes.begin(), prefixes.end(),
                     [&](const char* prefix) { return base.starts_with(prefix); });
}

}  // namespace

shim_libraries find_shim() {
  std::vector<fs::path> folders;
  if (const char* named = std::getenv("HOSTWAIT_LIBDIR"); named != nullptr && *named != '\0')
    folders.emplace_back(named);
  std::error_code ignored;
  const fs::path self = fs::read_symlink("/proc/self/exe", ignored).parent_path();
  const fs::path prefix = self.parent_path();
  folders.push_back(prefix / "lib");
  folders.push_back(prefix / "lib" / "hostwait");
  folders.push_back(prefix / "lib64" / "hostwait");
#if defined(__x86_64__)
  folders.push_back(prefix / "lib" / "x86_64-linux-gnu" / "hostwait");
#elif defined(__aarch64__)
  folders.push_back(prefix / "lib" / "aarch64-linux-gnu" / "hostwait");
#endif
  folders.push_back(self);
  shim_libraries found;
  for (const fs::path& folder : folders) {
    const std::string shim = (folder / "libhostwait.so").string();
    if (::access(shim.c_str(), R_OK) == 0) {
      found.shim = shim;
      const std::string link = (folder / "libhostwait_link.so").string();
      if (::access(link.c_str(), R_OK) == 0) found.link = link;
      const std::string selftest = (folder / "libhostwait_selftest.so").string();
      if (::access(selftest.c_str(), R_OK) == 0) found.selftest = selftest;
      return found;
    }
    found.searched += (found.searched.empty() ? "" : ", ") + folder.string();
  }
  return found;
}

preload_path::preload_path(const std::string& library) : text_(library) {
  if (library.find_first_of(" :") == std::string::npos) return;
  for (const char* parent : {"/tmp", "/dev/shm", "/var/tmp"}) {
    std::string pattern = std::string(parent) + "/hostwait-XXXXXX";
    if (::mkdtemp(pattern.data()) == nullptr) continue;
    const std::string link = pattern + '/' + base_name(library);
    if (::symlink(library.c_str(), link.c_str()) == 0) {
      folder_ = pattern;
      text_ = link;
      return;
    }
    ::rmdir(pattern.c_str());
  }
  throw failure(exit_usage, library +
                                ": a space or colon in this path cannot be preloaded, and no "
                                "link could be made in /tmp, /dev/shm or /var/tmp: " +
                                std::strerror(errno));
}

preload_path::~preload_path() {
  if (folder_.empty()) return;
  ::unlink(text_.c_str());
  ::rmdir(folder_.c_str());
}

std::string combine_preloads(const std::string& existing, const std::string& mine) {
  const std::vector<std::string> own = split_preload(mine);
  std::vector<std::string> others = split_preload(existing);
  std::erase_if(others, [&](const std::string& each) {
    return std::find(own.begin(), own.end(), each) != own.end();
  });
  const auto first_other = std::find_if_not(others.begin(), others.end(), is_sanitizer);
  std::string text;
  const auto add = [&](const std::string& each) { text += (text.empty() ? "" : ":") + each; };
  std::for_each(others.begin(), first_other, add);
  std::for_each(own.begin(), own.end(), add);
  std::for_each(first_other, others.end(), add);
  return text;
}

std::string relaxed_asan_options(const std::string& existing) {
  // The user's own word on it stays.
  if (existing.find("verify_asan_link_order") != std::string::npos) return existing;
  return existing + (existing.empty() ? "" : ":") + "verify_asan_link_order=0";
}

}  // namespace hostwait
