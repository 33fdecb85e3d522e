// SPDX-License-Identifier: Apache-2.0
// Copyright The hostwait authors
// Putting our functions in place of the driver's, and the wrappers of cuGetProcAddress.
//
// The driver resolves names, versions and flags; we only look at the pointer that it returns. So
// version and per-thread forms come out right without version logic, and a form that no row knows
// passes through and is noted.
#include "resolve_internal.hpp"

namespace hostwait::resolve {

namespace {

constexpr int not_found = 500;  // CUDA_ERROR_NOT_FOUND

void note_unmapped(const void* function, const char* name) noexcept {
  elf::for_each_module([&](const elf::module& m) {
    if (!m.holds(function)) return false;
    take_note(note::unmapped, name, m.path);
    return true;
  });
}

// *out was written by the driver for `name`.
void replace(const char* name, void** out, unsigned copy) noexcept {
  void* function = *out;
  if (function == nullptr || !driver_name(name)) return;
  target t = target_of(function, copy, name);
  // A driver may answer with a function of another copy of itself (WSL's loader does).
  if (!t.known()) t = target_of(function, copy_of(function), name);
  if (t.known()) {
    if (void* ours = replacement(t)) {
      *out = ours;
      seen(route_get_proc_address);
    }
  } else if (catalogue_base(name, entry::armed)) {
    note_unmapped(function, name);
  }
}

using version_1 = int (*)(const char*, void**, int, std::uint64_t);
using version_2 = int (*)(const char*, void**, int, std::uint64_t, void*);

template <unsigned Copy>
int get_proc_address(const char* name, void** out, int version, std::uint64_t flags) {
  const auto make = reinterpret_cast<version_1>(real_proc_address(proc_address_v1, Copy));
  if (make == nullptr) return not_found;
  const int result = make(name, out, version, flags);
  if (result == 0 && out != nullptr) replace(name, out, Copy);
  return result;
}

template <unsigned Copy, unsigned Form>
int get_proc_address_v2(const char* name, void** out, int version, std::uint64_t flags,
                        void* status) {
  const auto make = reinterpret_cast<version_2>(real_proc_address(Form, Copy));
  if (make == nullptr) return not_found;
  const int result = make(name, out, version, flags, status);
  if (result == 0 && out != nullptr) replace(name, out, Copy);
  return result;
}

template <unsigned Copy>
void* proc_address_wrapper(unsigned form) noexcept {
  switch (form) {
    case proc_address_v1:
      return reinterpret_cast<void*>(&get_proc_address<Copy>);
    case proc_address_v2:
      return reinterpret_cast<void*>(&get_proc_address_v2<Copy, proc_address_v2>);
    case proc_address_v2_ptsz:
      return reinterpret_cast<void*>(&get_proc_address_v2<Copy, proc_address_v2_ptsz>);
    default:
      return nullptr;
  }
}

}  // namespace

void* replacement(const target& t) noexcept {
  if (t.row != row_count) return entry::armed(t.row) ? entry::wrapper(t.row, t.copy) : nullptr;
  static_assert(max_copies == 4);
  switch (t.copy) {
    case 0:
      return proc_address_wrapper<0>(t.form);
    case 1:
      return proc_address_wrapper<1>(t.form);
    case 2:
      return proc_address_wrapper<2>(t.form);
    case 3:
      return proc_address_wrapper<3>(t.form);
    default:
      return nullptr;
  }
}

void* substitute(void* function, const char* name, route by) noexcept {
  const target t = target_of(function, copy_of(function), name);
  if (!t.known()) return function;
  void* ours = replacement(t);
  if (ours == nullptr) return function;
  seen(by);
  return ours;
}

}  // namespace hostwait::resolve
