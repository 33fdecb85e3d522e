// SPDX-License-Identifier: Apache-2.0
// Copyright The hostwait authors
// What the parts of resolve share: copies of the driver, substitution, notes, the loader's calls.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "resolve.hpp"
#include "resolve_elf.hpp"

// See row.hpp.
#pragma GCC visibility push(hidden)

namespace hostwait::resolve {

// ---- Names (resolve_names.cpp)

// "cu[A-Z]...": what a driver name looks like. Everything else is none of our business.
inline bool driver_name(const char* name) noexcept {
  return name != nullptr && name[0] == 'c' && name[1] == 'u' && name[2] >= 'A' && name[2] <= 'Z';
}

// The forms of cuGetProcAddress: no rows, but substituted like them.
enum proc_address_form : unsigned {
  proc_address_v1,       // cuGetProcAddress, 4 arguments
  proc_address_v2,       // cuGetProcAddress_v2, 5
  proc_address_v2_ptsz,  // the same under --default-stream per-thread
  proc_address_forms
};
extern const char* const proc_address_names[proc_address_forms];

// The row with exactly this symbol, row_count if there is none.
row_id row_of_symbol(const char* symbol) noexcept;
// Whether the symbol of some row that `accept` agrees to (null: any of calls.def), without version
// and per-thread suffixes, is `base`.
bool catalogue_base(const char* base, bool (*accept)(row_id) noexcept = nullptr) noexcept;
// Whether `symbol` is `base` with version and per-thread suffixes.
bool form_of(const char* symbol, const char* base) noexcept;

// ---- Copies of libcuda (resolve_copies.cpp)

struct target {
  unsigned copy = max_copies;  // max_copies: not a function of a known copy that we wrap
  row_id row = row_count;
  unsigned form = proc_address_forms;
  bool known() const noexcept { return row != row_count || form != proc_address_forms; }
};

// Recognised by SONAME and exports, never by path.
bool is_driver(const elf::image&) noexcept;

// The copy in which `function` lies; looks through the loaded objects where it is in no known copy
// and registers a new one. max_copies: in no copy of the driver (or one too many).
unsigned copy_of(const void* function) noexcept;
// The same for an object in hand.
unsigned see(const elf::module&, const elf::image&) noexcept;

// Which row or form a driver pointer stands for. Two symbols may share an address: the one that is
// a form of `name` wins. Lock-free.
target target_of(const void* function, unsigned copy, const char* name) noexcept;
void* real_proc_address(unsigned form, unsigned copy) noexcept;

// ---- Substitution (resolve_substitute.cpp)

// The function to hand out for the driver's pointer `function`, found under `name`.
void* substitute(void* function, const char* name, route by) noexcept;
// Our function for a target, null where the row is not armed.
void* replacement(const target&) noexcept;
void seen(route) noexcept;

// ---- The loader's calls (resolve_loader.cpp)

// What our hooks jump to: the next object's definition, so that other interposers behind us keep
// working. The assembly reads these.
extern "C" {
extern void* hostwait_next_dlsym __attribute__((visibility("hidden")));
extern void* hostwait_next_dlvsym __attribute__((visibility("hidden")));
extern void* hostwait_next_dlopen __attribute__((visibility("hidden")));
extern void* hostwait_next_dlclose __attribute__((visibility("hidden")));
// Not zero: dlsym has more to do than to jump.
extern std::uint32_t hostwait_dl_attention __attribute__((visibility("hidden")));
}
enum attention : std::uint32_t {
  attention_next = 1u << 0,     // the pointers above are not all known
  attention_modules = 1u << 1,  // objects may have been loaded: their links are to be looked at
};
void find_next() noexcept;

// Objects that were there at start-up: the first ones of the loader's list. 0: not known.
// note_startup() counts them; it runs with our own relocations, before any constructor.
void note_startup() noexcept;
unsigned startup_count() noexcept;
// Calls of dlopen and dlclose move the generation; those of dlclose are counted.
void note_load() noexcept;
void note_unload() noexcept;
std::uint32_t unload_count() noexcept;
bool strip_deepbind() noexcept;
bool link_route() noexcept;

// ---- Linked programs (resolve_slots.cpp)

// Points the driver references of loaded objects to our wrappers.
enum class link_pass : std::uint8_t {
  early,  // with our own relocations: the options are not read yet, the executable not relocated
  start,  // from our constructor: all objects of start-up
  later,  // after a dlopen
};
void look_at_links(link_pass) noexcept;

// ---- Notes for the report's head (resolve_notes.cpp)

enum class note : std::uint8_t {
  unmapped,           // name, and the object that the pointer lies in
  deepbind_stripped,  // library
  deepbind_kept,      // library: its own look-ups bypass us
  copy_beyond,        // path of the copy
};
void take_note(note what, const char* name, const char* where) noexcept;
// A driver name was asked for before our own relocations: also callable then.
void note_early() noexcept;

}  // namespace hostwait::resolve

#pragma GCC visibility pop
