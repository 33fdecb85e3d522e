// SPDX-License-Identifier: Apache-2.0
// Copyright The hostwait authors
// What the record and the unwinder need of shim/resolve*, for tests without a preload: dlsym finds
// libc's symbols, and the tests move the loader's generation themselves.
#include <dlfcn.h>

#include <atomic>
#include <cstring>

#include "record_resolve_double.hpp"
#include "resolve.hpp"

namespace {
std::atomic<std::uint32_t> generation{1};
}  // namespace

namespace hostwait::test {
void next_loader_generation() {
  generation.fetch_add(1);
}
}  // namespace hostwait::test

namespace hostwait::resolve {

void* libc_symbol(const char* name) noexcept {
#if defined(HOSTWAIT_TEST_OLD_LIBC)
  if (std::strcmp(name, "_dl_find_object") == 0) return nullptr;
#endif
  return dlsym(RTLD_DEFAULT, name);
}

std::uint32_t loader_generation() noexcept {
  return generation.load(std::memory_order_acquire);
}

}  // namespace hostwait::resolve
