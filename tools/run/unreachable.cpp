// SPDX-License-Identifier: Apache-2.0
// Copyright The hostwait authors
// Programs that the loader's preload cannot reach.
#include <elf.h>
#include <sys/stat.h>
#include <unistd.h>

#include <fstream>

#include "child.hpp"

namespace hostwait {

std::string why_unreachable(const std::string& path) {
  struct stat status {};
  if (::stat(path.c_str(), &status) == 0 && (status.st_mode & (S_ISUID | S_ISGID)) != 0 &&
      ::geteuid() != 0)
    return path + " changes its user or group: the loader ignores LD_PRELOAD";
  std::ifstream file(path, std::ios::binary);
  Elf64_Ehdr header{};
  if (!file.read(reinterpret_cast<char*>(&header), sizeof header) ||
      std::string(reinterpret_cast<const char*>(header.e_ident), SELFMAG) != ELFMAG)
    return "";
  if (header.e_ident[EI_CLASS] != ELFCLASS64)
    return path + " is a 32-bit program: CUDA and hostwait are 64-bit";
  for (int i = 0; i < header.e_phnum; ++i) {
    Elf64_Phdr segment{};
    file.seekg(static_cast<std::streamoff>(header.e_phoff) + i * header.e_phentsize);
    if (!file.read(reinterpret_cast<char*>(&segment), sizeof segment)) return "";
    if (segment.p_type == PT_INTERP) return "";
  }
  return path + " is linked statically: LD_PRELOAD does not reach it";
}

}  // namespace hostwait
