// SPDX-License-Identifier: Apache-2.0
// Copyright The hostwait authors
// Reading loaded ELF objects.
#include "resolve_elf.hpp"

#include <sys/auxv.h>

#include "resolve.hpp"
#include "sys.hpp"

// link.h declares it without visibility: the GOT entry would not be there before relocation.
extern ElfW(Dyn) _DYNAMIC[] __attribute__((visibility("hidden")));

namespace hostwait::resolve::elf {

namespace {

// The loader relocates the pointers of a dynamic section in place, unless the section is read-only
// (the vDSO's is).
template <class T>
const T* pointer(std::uintptr_t bias, std::uintptr_t value) noexcept {
  return reinterpret_cast<const T*>(value < bias ? value + bias : value);
}

// What the loader accepts as a definition.
bool defines(const ElfW(Sym) & symbol) noexcept {
  if (symbol.st_shndx == SHN_UNDEF) return false;
  const unsigned type = ELF64_ST_TYPE(symbol.st_info);
  if (symbol.st_value == 0 && symbol.st_shndx != SHN_ABS && type != STT_TLS) return false;
  const unsigned binding = ELF64_ST_BIND(symbol.st_info);
  return (type <= STT_FUNC || type == STT_COMMON || type == STT_TLS || type == STT_GNU_IFUNC) &&
         binding != STB_LOCAL;
}

std::uint16_t version_index(const image& in, const char* version) noexcept {
  const auto* definition = in.definitions;
  for (std::size_t i = 0; i < in.definition_count && definition != nullptr; ++i) {
    const auto* name = reinterpret_cast<const ElfW(Verdaux)*>(
        reinterpret_cast<const char*>(definition) + definition->vd_aux);
    if (same(in.strings + name->vda_name, version)) return definition->vd_ndx & 0x7fff;
    if (definition->vd_next == 0) break;
    definition = reinterpret_cast<const ElfW(Verdef)*>(reinterpret_cast<const char*>(definition) +
                                                       definition->vd_next);
  }
  return 0;
}

// Collects candidates of one name: the wanted version, else the default, else the only one.
struct choice {
  const image& in;
  const char* name;
  std::uint16_t wanted;  // 0: no version asked for
  const ElfW(Sym) * hidden = nullptr;

  const ElfW(Sym) * take(std::uint32_t index) noexcept {
    const ElfW(Sym)& symbol = in.symbols[index];
    if (!defines(symbol) || !same(in.strings + symbol.st_name, name)) return nullptr;
    if (in.versions == nullptr) return &symbol;
    const std::uint16_t version = in.versions[index];
    if (wanted != 0) return (version & 0x7fff) == wanted ? &symbol : nullptr;
    if ((version & 0x8000) == 0) return &symbol;
    if (hidden == nullptr) hidden = &symbol;
    return nullptr;
  }
};

const ElfW(Sym) * search_gnu(choice& which) noexcept {
  const image& in = which.in;
  std::uint32_t hash = 5381;
  for (const char* p = which.name; *p != '\0'; ++p)
    hash = hash * 33 + static_cast<unsigned char>(*p);
  const std::uint32_t buckets = in.gnu_hash[0], first = in.gnu_hash[1], words = in.gnu_hash[2];
  const auto* bloom = reinterpret_cast<const std::uint64_t*>(in.gnu_hash + 4);
  const std::uint64_t word = bloom[(hash / 64) & (words - 1)];
  if (((word >> (hash & 63)) & (word >> ((hash >> in.gnu_hash[3]) & 63)) & 1) == 0) return nullptr;
  const auto* bucket = reinterpret_cast<const std::uint32_t*>(bloom + words);
  const std::uint32_t* chain = bucket + buckets;
  if (buckets == 0) return nullptr;
  std::uint32_t index = bucket[hash % buckets];
  if (index < first) return nullptr;
  for (;; ++index) {
    const std::uint32_t here = chain[index - first];
    if (((here ^ hash) >> 1) == 0)
      if (const auto* found = which.take(index)) return found;
    if ((here & 1) != 0) return nullptr;
  }
}

const ElfW(Sym) * search_sysv(choice& which) noexcept {
  const image& in = which.in;
  std::uint32_t hash = 0;
  for (const char* p = which.name; *p != '\0'; ++p) {
    hash = (hash << 4) + static_cast<unsigned char>(*p);
    const std::uint32_t high = hash & 0xf0000000;
    hash = (hash ^ (high >> 24)) & ~high;
  }
  const std::uint32_t buckets = in.sysv_hash[0];
  if (buckets == 0) return nullptr;
  const std::uint32_t* chain = in.sysv_hash + 2 + buckets;
  for (std::uint32_t i = in.sysv_hash[2 + hash % buckets]; i != 0; i = chain[i])
    if (const auto* found = which.take(i)) return found;
  return nullptr;
}

// The auxiliary vector without libc, for the time before our relocations.
std::uintptr_t auxiliary(unsigned long type) noexcept {
  if (relocated()) return getauxval(type);
  const int fd = sys::open("/proc/self/auxv", O_RDONLY | O_CLOEXEC);
  if (fd < 0) return 0;
  std::uintptr_t value = 0;
  ElfW(auxv_t) entry;
  while (sys::call(SYS_read, fd, reinterpret_cast<long>(&entry), sizeof entry) == sizeof entry &&
         entry.a_type != AT_NULL) {
    if (entry.a_type != type) continue;
    value = entry.a_un.a_val;
    break;
  }
  sys::close(fd);
  return value;
}

const r_debug* find_loader_list() noexcept {
  // The executable's DT_DEBUG, as debuggers do it.
  const auto* headers = reinterpret_cast<const ElfW(Phdr)*>(auxiliary(AT_PHDR));
  const std::size_t count = auxiliary(AT_PHNUM);
  std::uintptr_t bias = 0, dynamic = 0;
  for (std::size_t i = 0; headers != nullptr && i < count; ++i) {
    if (headers[i].p_type == PT_PHDR)
      bias = reinterpret_cast<std::uintptr_t>(headers) - headers[i].p_vaddr;
    if (headers[i].p_type == PT_DYNAMIC) dynamic = headers[i].p_vaddr;
  }
  if (dynamic != 0) {
    for (auto* d = reinterpret_cast<const ElfW(Dyn)*>(bias + dynamic); d->d_tag != DT_NULL; ++d)
      if (d->d_tag == DT_DEBUG && d->d_un.d_ptr != 0)
        return reinterpret_cast<const r_debug*>(d->d_un.d_ptr);
  }
  // Linked without DT_DEBUG: the loader exports the structure.
  const std::uintptr_t base = auxiliary(AT_BASE);
  if (base == 0) return nullptr;
  const auto* header = reinterpret_cast<const ElfW(Ehdr)*>(base);
  headers = reinterpret_cast<const ElfW(Phdr)*>(base + header->e_phoff);
  for (unsigned i = 0; i < header->e_phnum; ++i) {
    image loader;
    if (headers[i].p_type != PT_DYNAMIC ||
        !open(base, reinterpret_cast<const ElfW(Dyn)*>(base + headers[i].p_vaddr), loader))
      continue;
    if (const auto* symbol = find(loader, "_r_debug"))
      return reinterpret_cast<const r_debug*>(base + symbol->st_value);
  }
  return nullptr;
}

const r_debug* known_list;

}  // namespace

bool open(std::uintptr_t bias, const ElfW(Dyn) * dynamic, image& out) noexcept {
  if (dynamic == nullptr) return false;
  out = image{};
  out.bias = bias;
  out.dynamic = dynamic;
  std::size_t soname = 0, relocation_bytes = 0, plt_bytes = 0;
  for (const auto* d = dynamic; d->d_tag != DT_NULL; ++d) {
    const std::uintptr_t value = d->d_un.d_ptr;
    switch (d->d_tag) {
      case DT_SYMTAB:
        out.symbols = pointer<ElfW(Sym)>(bias, value);
        break;
      case DT_STRTAB:
        out.strings = pointer<char>(bias, value);
        break;
      case DT_GNU_HASH:
        out.gnu_hash = pointer<std::uint32_t>(bias, value);
        break;
      case DT_HASH:
        out.sysv_hash = pointer<std::uint32_t>(bias, value);
        break;
      case DT_VERSYM:
        out.versions = pointer<std::uint16_t>(bias, value);
        break;
      case DT_VERDEF:
        out.definitions = pointer<ElfW(Verdef)>(bias, value);
        break;
      case DT_VERDEFNUM:
        out.definition_count = value;
        break;
      case DT_SONAME:
        soname = value;
        break;
      case DT_RELA:
        out.relocations = pointer<ElfW(Rela)>(bias, value);
        break;
      case DT_RELASZ:
        relocation_bytes = value;
        break;
      case DT_RELACOUNT:
        out.relative_count = value;
        break;
      case DT_JMPREL:
        out.plt_relocations = pointer<ElfW(Rela)>(bias, value);
        break;
      case DT_PLTRELSZ:
        plt_bytes = value;
        break;
      default:
        break;
    }
  }
  if (out.symbols == nullptr || out.strings == nullptr) return false;
  if (soname != 0) out.soname = out.strings + soname;
  if (out.relocations != nullptr) out.relocation_count = relocation_bytes / sizeof(ElfW(Rela));
  if (out.plt_relocations != nullptr) out.plt_relocation_count = plt_bytes / sizeof(ElfW(Rela));
  if (out.relative_count > out.relocation_count) out.relative_count = out.relocation_count;
  return true;
}

const ElfW(Sym) * find(const image& in, const char* name, const char* version) noexcept {
  std::uint16_t wanted = 0;
  if (version != nullptr && in.versions != nullptr) {
    wanted = version_index(in, version);
    if (wanted == 0) return nullptr;
  }
  choice which{in, name, wanted};
  const ElfW(Sym)* found = nullptr;
  if (in.gnu_hash != nullptr) {
    found = search_gnu(which);
  } else if (in.sysv_hash != nullptr) {
    found = search_sysv(which);
  }
  return found != nullptr ? found : which.hidden;
}

void* address(const image& in, const ElfW(Sym) & symbol) noexcept {
  const std::uintptr_t value =
      symbol.st_shndx == SHN_ABS ? symbol.st_value : in.bias + symbol.st_value;
  if (ELF64_ST_TYPE(symbol.st_info) != STT_GNU_IFUNC) return reinterpret_cast<void*>(value);
#if defined(__aarch64__)
  return reinterpret_cast<void* (*)(std::uintptr_t)>(value)(auxiliary(AT_HWCAP));
#else
  return reinterpret_cast<void* (*)()>(value)();
#endif
}

bool needs(const image& in, const char* soname) noexcept {
  for (const auto* d = in.dynamic; d->d_tag != DT_NULL; ++d)
    if (d->d_tag == DT_NEEDED && same(in.strings + d->d_un.d_val, soname)) return true;
  return false;
}

bool relocated() noexcept {
  // A relative relocation of ours; the asm hides from the compiler that it knows the value.
  static const void* const self = &known_list;
  const void* const volatile* seen = &self;
  const void* here = &known_list;
  asm("" : "+r"(here));
  return *seen == here;
}

const r_debug* loader_list() noexcept {
  const r_debug* list = __atomic_load_n(&known_list, __ATOMIC_ACQUIRE);
  if (list == nullptr) {
    list = find_loader_list();
    __atomic_store_n(&known_list, list, __ATOMIC_RELEASE);
  }
  return list;
}

const ElfW(Dyn) * own_dynamic() noexcept {
  return _DYNAMIC;
}

namespace {

struct visitor {
  bool (*visit)(void*, const module&);
  void* context;
  unsigned next_index;
};

int visit_header(dl_phdr_info* info, std::size_t size, void* opaque) {
  auto& to = *static_cast<visitor*>(opaque);
  module m{};
  m.bias = info->dlpi_addr;
  m.path = info->dlpi_name;
  m.index = to.next_index++;
  m.start = ~std::uintptr_t{0};
  if (size >= offsetof(dl_phdr_info, dlpi_subs) + sizeof info->dlpi_subs) {
    m.loads = info->dlpi_adds;
    m.unloads = info->dlpi_subs;
  }
  for (unsigned i = 0; i < info->dlpi_phnum; ++i) {
    const ElfW(Phdr)& header = info->dlpi_phdr[i];
    const std::uintptr_t start = m.bias + header.p_vaddr, end = start + header.p_memsz;
    if (header.p_type == PT_LOAD) {
      if (start < m.start) m.start = start;
      if (end > m.end) m.end = end;
    } else if (header.p_type == PT_DYNAMIC) {
      m.dynamic = reinterpret_cast<const ElfW(Dyn)*>(start);
    } else if (header.p_type == PT_GNU_RELRO) {
      m.relro_start = start;
      m.relro_end = end;
    }
  }
  return m.dynamic != nullptr && to.visit(to.context, m) ? 1 : 0;
}

}  // namespace

bool for_each_module(bool (*visit)(void*, const module&), void* context) noexcept {
  using iterate = int (*)(int (*)(dl_phdr_info*, std::size_t, void*), void*);
  // libc's own one: an interposed one (sanitizers have it) may not be ready yet.
  static void* known;
  void* function = __atomic_load_n(&known, __ATOMIC_RELAXED);
  if (function == nullptr) {
    function = libc_symbol("dl_iterate_phdr");
    if (function == nullptr) return false;
    __atomic_store_n(&known, function, __ATOMIC_RELAXED);
  }
  visitor to{visit, context, 0};
  return reinterpret_cast<iterate>(function)(visit_header, &to) != 0;
}

}  // namespace hostwait::resolve::elf
