// SPDX-License-Identifier: Apache-2.0
// Copyright The hostwait authors
// The record's module table: which object lay at an address, in which generation of the loader's
// list. An object that was unloaded and loaded again at the same place is the same module only if
// its path and build id are the same.
#include <elf.h>
#include <link.h>

#include <cstring>

#include "record.hpp"
#include "record_store.hpp"
#include "unwind_objects.hpp"

namespace hostwait::record {

namespace {

struct known_module {
  std::uintptr_t start, end;
  std::uint32_t number, generation;  // generation in which it was last looked at
};
constexpr std::uint32_t max_known = 1024;  // beyond it modules are looked up anew each time
constinit known_module known_[max_known]{};
constinit std::uint32_t known_count_ = 0, last_ = 0;

struct identity {
  std::uint8_t build_id[20];
  std::uint32_t build_id_bytes;
  std::uint32_t flags;
};

bool is_driver(const char* soname) noexcept {
  return std::strncmp(soname, "libcuda.so.", 11) == 0;
}

const char* base_name(const char* path) noexcept {
  const char* slash = std::strrchr(path, '/');
  return slash != nullptr ? slash + 1 : path;
}

void read_note(const char* at, std::size_t size, identity& out) noexcept {
  while (size >= sizeof(ElfW(Nhdr))) {
    ElfW(Nhdr) note;
    std::memcpy(&note, at, sizeof note);
    std::size_t name = (note.n_namesz + 3) & ~3u, rest = (note.n_descsz + 3) & ~3u;
    if (name > size || rest > size || sizeof note + name + rest > size) return;
    if (note.n_type == NT_GNU_BUILD_ID && note.n_namesz == 4 &&
        std::memcmp(at + sizeof note, "GNU", 4) == 0) {
      out.build_id_bytes =
          note.n_descsz < sizeof out.build_id ? note.n_descsz : sizeof out.build_id;
      std::memcpy(out.build_id, at + sizeof note + name, out.build_id_bytes);
      return;
    }
    at += sizeof note + name + rest;
    size -= sizeof note + name + rest;
  }
}

const char* soname_of(const unwind::object& in, const ElfW(Dyn) * dynamic) noexcept {
  std::uintptr_t texts = 0, name = 0;
  bool named = false;
  for (; dynamic->d_tag != DT_NULL; ++dynamic) {
    if (dynamic->d_tag == DT_STRTAB) texts = dynamic->d_un.d_ptr;
    if (dynamic->d_tag == DT_SONAME) {
      name = dynamic->d_un.d_val;
      named = true;
    }
  }
  if (!named || texts == 0) return "";
  if (texts < in.bias) texts += in.bias;  // the loader relocates it where the section is writable
  std::uintptr_t at = texts + name;
  return at >= in.start && at < in.end ? reinterpret_cast<const char*>(at) : "";
}

identity identify(const unwind::object& in) noexcept {
  identity out{};
  std::uintptr_t self = reinterpret_cast<std::uintptr_t>(&ensure_open);
  bool own = self >= in.start && self < in.end;
  own |= std::strcmp(base_name(in.name), "libhostwait_link.so") == 0;
  if (own) out.flags |= HOSTWAIT_MODULE_OWN;

  // The ELF header lies at the start of the first segment of every object that a linker of today
  // makes; its program headers are only believed within the first page.
  const auto* elf = reinterpret_cast<const ElfW(Ehdr)*>(in.start);
  if (std::memcmp(elf->e_ident, ELFMAG, SELFMAG) != 0 || elf->e_phentsize != sizeof(ElfW(Phdr)) ||
      elf->e_phoff + std::uint64_t{elf->e_phnum} * sizeof(ElfW(Phdr)) > 4096)
    return out;
  const auto* parts = reinterpret_cast<const ElfW(Phdr)*>(in.start + elf->e_phoff);
  for (unsigned i = 0; i < elf->e_phnum; ++i) {
    std::uintptr_t from = in.bias + parts[i].p_vaddr;
    if (from < in.start || from + parts[i].p_memsz > in.end) continue;
    if (parts[i].p_type == PT_NOTE && out.build_id_bytes == 0)
      read_note(reinterpret_cast<const char*>(from), parts[i].p_memsz, out);
    if (parts[i].p_type == PT_DYNAMIC &&
        is_driver(soname_of(in, reinterpret_cast<const ElfW(Dyn)*>(from))))
      out.flags |= HOSTWAIT_MODULE_DRIVER;
  }
  return out;
}

std::uint32_t path_of(const unwind::object& in) noexcept {
  if (in.name != nullptr && *in.name != '\0') return text_number(in.name, std::strlen(in.name));
  char path[4096];
  long size = sys::call(SYS_readlinkat, AT_FDCWD, reinterpret_cast<long>("/proc/self/exe"),
                        reinterpret_cast<long>(path), sizeof path);
  return size > 0 ? text_number(path, static_cast<std::size_t>(size)) : 0;
}

bool same(const hostwait_record_module& known, const unwind::object& in, std::uint32_t path,
          const identity& who) noexcept {
  return known.start == in.start && known.end == in.end && known.bias == in.bias &&
         known.path == path && known.build_id_bytes == who.build_id_bytes &&
         std::memcmp(known.build_id, who.build_id, who.build_id_bytes) == 0;
}

// The table's number for this object: an older entry that is the same, or a new one.
std::uint32_t number_of(const unwind::object& in, std::uint32_t generation) noexcept {
  std::uint32_t path = path_of(in);
  identity who = identify(in);
  std::uint32_t count = sections_.of(HOSTWAIT_SECTION_MODULES).count();
  for (std::uint32_t i = 0; i < count; ++i) {
    auto* known = entry_at<hostwait_record_module>(HOSTWAIT_SECTION_MODULES, i);
    if (same(*known, in, path, who)) return i;
  }
  auto* fresh = static_cast<hostwait_record_module*>(sections_.next(HOSTWAIT_SECTION_MODULES));
  if (fresh == nullptr) {
    mark(HOSTWAIT_RECORD_FULL);
    return HOSTWAIT_FRAME_NO_MODULE;
  }
  fresh->start = in.start;
  fresh->end = in.end;
  fresh->bias = in.bias;
  fresh->path = path;
  fresh->generation = generation;
  fresh->build_id_bytes = who.build_id_bytes;
  std::memcpy(fresh->build_id, who.build_id, sizeof fresh->build_id);
  fresh->flags = who.flags;
  return sections_.publish_next(HOSTWAIT_SECTION_MODULES);
}

}  // namespace

std::uint32_t module_of(std::uintptr_t address, std::uint32_t generation) noexcept {
  auto current = [&](const known_module& one) {
    return address >= one.start && address < one.end && one.generation == generation;
  };
  if (last_ < known_count_ && current(known_[last_])) return known_[last_].number;
  for (std::uint32_t i = 0; i < known_count_; ++i) {
    if (!current(known_[i])) continue;
    last_ = i;
    return known_[i].number;
  }
  unwind::object in;
  if (!unwind::find_object(address, in)) return HOSTWAIT_FRAME_NO_MODULE;
  std::uint32_t number = number_of(in, generation);
  // Takes the place of what was there before, or of the oldest look.
  std::uint32_t i = 0;
  while (i < known_count_ && !(known_[i].start < in.end && in.start < known_[i].end)) ++i;
  if (i == max_known) i = address / 4096 % max_known;
  if (i == known_count_) ++known_count_;
  known_[i] = {in.start, in.end, number, generation};
  last_ = i;
  return number;
}

void forget_modules() noexcept {
  known_count_ = last_ = 0;
}

}  // namespace hostwait::record
