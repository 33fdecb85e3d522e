// SPDX-License-Identifier: Apache-2.0
// Copyright The hostwait authors
// Test double of the wrappers: each counts its calls and makes the driver's. Linked with the true
// route sources into a library that is preloaded by the tests of this folder.
#include <cstdlib>
#include <cstring>
#include <utility>

#include "resolve.hpp"

namespace {

unsigned counts[hostwait::row_count][hostwait::resolve::max_copies];
unsigned handed[hostwait::row_count];  // how often the wrapper was given out

// Six register arguments are more than any function of the stand-in has.
template <unsigned Row, unsigned Copy>
long wrap(long a, long b, long c, long d, long e, long f) {
  __atomic_fetch_add(&counts[Row][Copy], 1, __ATOMIC_RELAXED);
  using function = int (*)(long, long, long, long, long, long);
  void* real = hostwait::resolve::real(static_cast<hostwait::row_id>(Row), Copy);
  return reinterpret_cast<function>(real)(a, b, c, d, e, f);
}

template <unsigned Copy, unsigned... Row>
void* pick(unsigned row, std::integer_sequence<unsigned, Row...>) {
  static void* const all[] = {reinterpret_cast<void*>(&wrap<Row, Copy>)...};
  return all[row];
}

unsigned row_of(const char* symbol) {
  unsigned row = 0;
  while (row < hostwait::row_count && std::strcmp(symbol, hostwait::rows[row].symbol) != 0) ++row;
  return row;
}

using all_rows = std::make_integer_sequence<unsigned, hostwait::row_count>;

}  // namespace

namespace hostwait::entry {

void* wrapper(row_id row, unsigned copy) noexcept {
  __atomic_fetch_add(&handed[row], 1, __ATOMIC_RELAXED);
  switch (copy) {
    case 0:
      return pick<0>(row, all_rows{});
    case 1:
      return pick<1>(row, all_rows{});
    case 2:
      return pick<2>(row, all_rows{});
    default:
      return pick<3>(row, all_rows{});
  }
}

// As in the true one, the options are read at the first call.
bool armed(row_id row) noexcept {
  static bool configured = false;
  if (!configured) {
    configured = true;
    resolve::settings set;
    set.link_route = std::getenv("ROUTES_NOLINK") == nullptr;
    set.strip_deepbind = std::getenv("ROUTES_KEEP_DEEPBIND") == nullptr;
    resolve::configure(set);
  }
  if (rows[row].type == row_type::pressure || rows[row].type == row_type::audit) return false;
  const char* unarmed = std::getenv("ROUTES_UNARMED");
  return unarmed == nullptr || std::strcmp(unarmed, rows[row].symbol) != 0;
}

}  // namespace hostwait::entry

extern "C" {

// Calls that went through the wrapper of `symbol` in that copy; -1: no such row.
__attribute__((visibility("default"))) int routes_wrapped(const char* symbol, unsigned copy) {
  const unsigned row = row_of(symbol);
  return row < hostwait::row_count ? static_cast<int>(counts[row][copy]) : -1;
}
__attribute__((visibility("default"))) int routes_handed(const char* symbol) {
  const unsigned row = row_of(symbol);
  return row < hostwait::row_count ? static_cast<int>(handed[row]) : -1;
}
__attribute__((visibility("default"))) unsigned routes_seen() {
  return hostwait::resolve::routes_seen();
}
__attribute__((visibility("default"))) unsigned routes_generation() {
  return hostwait::resolve::loader_generation();
}
__attribute__((visibility("default"))) unsigned routes_copies() {
  return hostwait::resolve::copy_count();
}
__attribute__((visibility("default"))) int routes_blind() {
  return hostwait::resolve::blind();
}
__attribute__((visibility("default"))) unsigned long routes_notes(char* out, unsigned long room) {
  return hostwait::resolve::describe_blind_spots(out, room);
}

}  // extern "C"
