// SPDX-License-Identifier: Apache-2.0
// Copyright The hostwait authors
// Look-up by name, version and stream flags; fallback for exports that are not simulated.
//
// This file must not see cuda.h's prototypes: it names all exports with one generic type. A
// strong definition elsewhere replaces the weak one here.
#include <cstring>

namespace hostwait::sim {

int not_simulated(int index);

namespace {

enum index : int {
#define HOSTWAIT_SIM_EXPORT(symbol, base, version, per_thread) index_##symbol,
#include "exports.def"
#undef HOSTWAIT_SIM_EXPORT
};

}  // namespace
}  // namespace hostwait::sim

extern "C" {
#define HOSTWAIT_SIM_EXPORT(symbol, base, version, per_thread)          \
  __attribute__((visibility("hidden"))) int fallback_##symbol(void) {   \
    return hostwait::sim::not_simulated(hostwait::sim::index_##symbol); \
  }                                                                     \
  __attribute__((visibility("default"), weak, alias("fallback_" #symbol))) int symbol(void);
#include "exports.def"
#undef HOSTWAIT_SIM_EXPORT
}

namespace hostwait::sim {

struct lookup_row {
  const char* symbol;
  const char* base;
  int version;
  bool per_thread;
  int (*entry)(void);
  int (*fallback)(void);
};

namespace {

const lookup_row rows[] = {
#define HOSTWAIT_SIM_EXPORT(symbol, base, version, per_thread) \
  {#symbol, #base, version, per_thread != 0, symbol, fallback_##symbol},
#include "exports.def"
#undef HOSTWAIT_SIM_EXPORT
};

// The newest version that the caller knows.
const lookup_row* newest(const char* name, int version, bool per_thread, bool* known) {
  const lookup_row* best = nullptr;
  for (const lookup_row& row : rows) {
    if (row.per_thread != per_thread || strcmp(row.base, name)) continue;
    *known = true;
    if (row.version <= version && (!best || row.version > best->version)) best = &row;
  }
  return best;
}

}  // namespace

// Null with `known` set: the name exists, but not for that version.
void* look_up(const char* name, int version, bool per_thread, bool* known) {
  const lookup_row* found = nullptr;
  *known = false;
  if (per_thread) found = newest(name, version, true, known);
  if (!found) found = newest(name, version, false, known);
  return found ? reinterpret_cast<void*>(found->entry) : nullptr;
}

int simulated(const char* symbol) {
  for (const lookup_row& row : rows)
    if (!strcmp(row.symbol, symbol)) return row.entry != row.fallback;
  return -1;
}

}  // namespace hostwait::sim
