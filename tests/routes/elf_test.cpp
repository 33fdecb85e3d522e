// SPDX-License-Identifier: Apache-2.0
// Copyright The hostwait authors
// Our own ELF look-up against libc's, and the tables of names.
#include <dlfcn.h>
#include <unistd.h>

#include <cstdlib>
#include <string>

#include "resolve.hpp"
#include "resolve_internal.hpp"
#include "support/catch.hpp"

using namespace hostwait;
using namespace hostwait::resolve;

namespace {

struct opened {
  void* handle;
  elf::image image;
  explicit opened(const char* path) : handle(dlopen(path, RTLD_NOW | RTLD_LOCAL)) {
    INFO(path);
    REQUIRE(handle != nullptr);
    const auto* map = static_cast<const link_map*>(handle);
    REQUIRE(elf::open(map->l_addr, map->l_ld, image));
  }
  ~opened() { dlclose(handle); }
  void* address(const char* name, const char* version = nullptr) const {
    const auto* symbol = elf::find(image, name, version);
    return symbol != nullptr ? elf::address(image, *symbol) : nullptr;
  }
};

const char* driver_path() {
  return std::getenv("ROUTE_DRIVER_PATH");
}
const char* sysv_path() {
  return std::getenv("ROUTE_SYSV_PATH");
}

}  // namespace

TEST_CASE("libc's symbols are found without libc's look-up") {
  // By handle: in a sanitized build the global scope begins with the sanitizer's ones.
  const auto expected = [](const char* name) -> void* {
    for (const char* part : {"libc.so.6", "libdl.so.2", "libpthread.so.0"}) {
      void* handle = dlopen(part, RTLD_LAZY | RTLD_NOLOAD);
      void* found = handle != nullptr ? dlsym(handle, name) : nullptr;
      if (handle != nullptr) dlclose(handle);
      if (found != nullptr) return found;
    }
    return nullptr;
  };
  for (const char* name : {"dlsym", "dlopen", "dlvsym", "dlclose", "dl_iterate_phdr", "getenv",
                           "pthread_mutex_trylock", "memcpy", "strlen"}) {
    INFO(name);
    CHECK(libc_symbol(name) != nullptr);
    CHECK(libc_symbol(name) == expected(name));
  }
  CHECK(libc_symbol("cuInit") == nullptr);
  CHECK(libc_symbol("no_such_symbol_of_libc") == nullptr);
}

TEST_CASE("a look-up by GNU hash, by SysV hash and by version agrees with dlsym and dlvsym") {
  for (const char* path : {driver_path(), sysv_path()}) {
    opened library(path);
    for (const char* name :
         {"cuInit", "cuCtxSynchronize", "cuStreamSynchronize_ptsz", "cuMemcpyDtoH_v2",
          "cuGetProcAddress_v2", "standin_last", "cuNotThere", "cuStreamSynchroniz", ""}) {
      INFO(path << ": " << name);
      CHECK(library.address(name) == dlsym(library.handle, name));
      CHECK(library.address(name, "LIBCUDA_1") == dlvsym(library.handle, name, "LIBCUDA_1"));
      CHECK(library.address(name, "LIBCUDA_9") == dlvsym(library.handle, name, "LIBCUDA_9"));
    }
    CHECK(is_driver(library.image));
  }
  opened versioned(driver_path()), unversioned(sysv_path());
  CHECK(versioned.image.definitions != nullptr);
  CHECK(unversioned.image.definitions == nullptr);
  CHECK(unversioned.image.gnu_hash == nullptr);
  CHECK(elf::needs(versioned.image, "libc.so.6"));
  CHECK_FALSE(elf::needs(versioned.image, "libcuda.so.1"));
}

TEST_CASE("names of rows") {
  for (unsigned row = 0; row < row_count; ++row) {
    INFO(rows[row].symbol);
    CHECK(row_of_symbol(rows[row].symbol) == row);
  }
  CHECK(row_of_symbol("cuNotThere") == row_count);
  CHECK(row_of_symbol("") == row_count);
  CHECK(catalogue_base("cuMemcpyDtoHAsync"));
  CHECK(catalogue_base("cuCtxSynchronize"));
  CHECK_FALSE(catalogue_base("cuMemcpyDtoHAsync_v"));
  CHECK_FALSE(catalogue_base("cuMemcpyDtoHAs"));
  CHECK_FALSE(catalogue_base("cuDeviceGetCount"));
  const auto nothing = [](row_id) noexcept { return false; };
  CHECK_FALSE(catalogue_base("cuCtxSynchronize", nothing));
  CHECK(form_of("cuMemcpyDtoHAsync_v2_ptsz", "cuMemcpyDtoHAsync"));
  CHECK(form_of("cuStreamSynchronize_ptsz", "cuStreamSynchronize"));
  CHECK(form_of("cuStreamSynchronize", "cuStreamSynchronize"));
  CHECK_FALSE(form_of("cuMemcpyDtoHAsync_v2", "cuMemcpyDtoH"));
  CHECK_FALSE(form_of("cuMemcpyDtoH_v2", "cuMemcpyDtoHAsync"));
}

TEST_CASE("pointers of a copy lead back to their rows") {
  opened library(driver_path());
  const unsigned copy = copy_of(library.address("cuCtxSynchronize"));
  REQUIRE(copy < max_copies);
  for (const char* name : {"cuCtxSynchronize", "cuCtxSynchronize_v2", "cuStreamSynchronize",
                           "cuStreamSynchronize_ptsz", "cuMemcpyDtoH_v2", "cuMemcpyDtoH_v2_ptds"}) {
    INFO(name);
    const target t = target_of(library.address(name), copy, name);
    REQUIRE(t.row != row_count);
    CHECK(std::string(rows[t.row].symbol) == name);
    CHECK(real(t.row, copy) == library.address(name));
  }
  CHECK(target_of(library.address("cuGetProcAddress"), copy, "").form == proc_address_v1);
  CHECK(target_of(library.address("cuGetProcAddress_v2"), copy, "").form == proc_address_v2);
  const target audited = target_of(library.address("cuDeviceGetCount"), copy, "cuDeviceGetCount");
  REQUIRE(audited.row != row_count);
  CHECK(rows[audited.row].type == row_type::audit);
  CHECK_FALSE(
      target_of(static_cast<char*>(library.address("cuDeviceGetCount")) + 1, copy, "").known());
  CHECK(helper(helper_id::driver_version, copy) == library.address("cuDriverGetVersion"));
  CHECK(helper(helper_id::pointer_attributes, copy) == nullptr);
  CHECK(std::string(copy_at(copy).path) == driver_path());
  CHECK(copy_of(reinterpret_cast<void*>(&getpid)) == max_copies);
  CHECK(copy_of(nullptr) == max_copies);
}

TEST_CASE("notes are counted, cut and bounded") {
  take_note(note::deepbind_stripped, "", "/lib/a.so");
  take_note(note::deepbind_stripped, "", "/lib/a.so");
  CHECK_FALSE(blind());
  take_note(note::unmapped, "cuStreamSynchronize", "/lib/libcuda.so.1");
  take_note(note::unmapped, "cuStreamSynchronize", "/lib/libcuda.so.1");
  CHECK(blind());
  char text[4096];
  const std::string all(text, describe_blind_spots(text, sizeof text));
  CHECK(all ==
        "cuStreamSynchronize: 2 look-ups gave an unknown function in /lib/libcuda.so.1\n"
        "RTLD_DEEPBIND removed: /lib/a.so");
  CHECK(describe_blind_spots(text, 10) == 10);
  CHECK(std::string(text, 10) == all.substr(0, 10));
  CHECK(describe_blind_spots(text, 0) == 0);
  const std::string longer = std::string(5000, 'x') + "/end.so";
  for (int i = 0; i < 100; ++i)
    take_note(note::deepbind_stripped, "", (longer + std::to_string(i)).c_str());
  char more[32768];
  const std::string full(more, describe_blind_spots(more, sizeof more));
  CHECK_THAT(full, ContainsSubstring("x/end.so0"));
  CHECK_THAT(full, ContainsSubstring("\n38 more"));
}
