// SPDX-License-Identifier: Apache-2.0
// Copyright The hostwait authors
// Programs that the loader's preload cannot reach.
#include <elf.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>

#include "child.hpp"

namespace hostwait {

namespace {

#if defined(__x86_64__)
constexpr Elf64_Half own_machine = EM_X86_64;
#elif defined(__aarch64__)
constexpr Elf64_Half own_machine = EM_AARCH64;
#endif

// The program's loader, "" where it names none: it is linked statically then.
std::string interpreter_of(std::ifstream& file, const Elf64_Ehdr& header) {
  for (int i = 0; i < header.e_phnum; ++i) {
    Elf64_Phdr segment{};
    file.seekg(static_cast<std::streamoff>(header.e_phoff) + i * header.e_phentsize);
    if (!file.read(reinterpret_cast<char*>(&segment), sizeof segment)) return "?";
    if (segment.p_type != PT_INTERP) continue;
    std::string path(std::min<std::uint64_t>(segment.p_filesz, 4096), '\0');
    file.seekg(static_cast<std::streamoff>(segment.p_offset));
    if (!file.read(path.data(), static_cast<std::streamsize>(path.size()))) return "?";
    return path.c_str();
  }
  return "";
}

}  // namespace

std::string why_unreachable(const std::string& path) {
  struct stat status {};
  const bool known = ::stat(path.c_str(), &status) == 0;
  if (known && (status.st_mode & (S_ISUID | S_ISGID)) != 0 && ::geteuid() != 0)
    return path + " changes its user or group: the loader ignores LD_PRELOAD";
  if (known && ::getxattr(path.c_str(), "security.capability", nullptr, 0) > 0 && ::geteuid() != 0)
    return path + " has file capabilities: the loader ignores LD_PRELOAD";
  std::ifstream file(path, std::ios::binary);
  Elf64_Ehdr header{};
  if (!file.read(reinterpret_cast<char*>(&header), sizeof header) ||
      std::string(reinterpret_cast<const char*>(header.e_ident), SELFMAG) != ELFMAG)
    return "";
  if (header.e_ident[EI_CLASS] != ELFCLASS64)
    return path + " is a 32-bit program: CUDA and hostwait are 64-bit";
  if (header.e_machine != own_machine) return path + " is a program for another machine";
  const std::string loader = interpreter_of(file, header);
  if (loader.empty()) return path + " is linked statically: LD_PRELOAD does not reach it";
  if (loader.find("/ld-musl-") != std::string::npos)
    return path + " is linked with musl: CUDA and hostwait need glibc";
  return "";
}

}  // namespace hostwait
