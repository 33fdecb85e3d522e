// SPDX-License-Identifier: Apache-2.0
// Copyright The hostwait authors
// Functions whose names and lines tools_symbols_test looks up. Line numbers matter here.
#include "tools_marked.hpp"

namespace marked {

template <class number>
[[gnu::noinline]] std::uintptr_t here(number n) {
  const auto address = reinterpret_cast<std::uintptr_t>(__builtin_return_address(0));
  return address + static_cast<std::uintptr_t>(n - n);
}

namespace {
[[gnu::always_inline]] inline std::uintptr_t inlined() {
  const std::uintptr_t address = here(1L);  // line 16
  asm volatile("" ::: "memory");
  return address;
}
}  // namespace

std::uintptr_t plain() {
  const std::uintptr_t address = here(1);  // line 23
  asm volatile("" ::: "memory");
  return address;
}

std::uintptr_t outer() {
  const std::uintptr_t address = inlined();  // line 29
  asm volatile("" ::: "memory");
  return address;
}

std::uintptr_t in_lambda() {
  const auto inner = [](int n) __attribute__((noinline)) {
    const std::uintptr_t address = here(n);
    asm volatile("" ::: "memory");
    return address;
  };
  return inner(1);
}

}  // namespace marked
