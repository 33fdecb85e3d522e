// SPDX-License-Identifier: Apache-2.0
// Copyright The hostwait authors
// Routes: how programs reach the driver, and where our wrappers are put in between. Every loader
// trick lives in resolve*.cpp and resolve*.S and nowhere else.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "row.hpp"

// See row.hpp.
#pragma GCC visibility push(hidden)

namespace hostwait::resolve {

// Copies of libcuda that can be told apart in one process; further ones pass through, and the
// report says so.
inline constexpr unsigned max_copies = 4;

// The driver's own function for a row, in the copy of libcuda numbered `copy`. Null before that
// copy is known and for symbols that it does not export. Lock-free; works before constructors.
extern std::atomic<void*> real_table[max_copies][row_count] __attribute__((visibility("hidden")));
inline void* real(row_id row, unsigned copy) noexcept {
  return real_table[copy][row].load(std::memory_order_relaxed);
}

// Driver functions that the shim itself calls and that are no rows. Null where absent.
enum class helper_id : std::uint8_t {
  pointer_attributes,   // cuPointerGetAttributes
  stream_is_capturing,  // cuStreamIsCapturing
  driver_version,       // cuDriverGetVersion
  device_attribute,     // cuDeviceGetAttribute
  count
};
void* helper(helper_id what, unsigned copy) noexcept;

// A symbol of libc or of the dynamic loader (dlsym, dlopen, pthread_...), found by our own ELF
// look-up: once dlvsym is interposed, even a versioned reference binds to ourselves. Null if
// absent.
void* libc_symbol(const char* name) noexcept;

struct copy_info {
  const char* path;  // as the loader knows it; static once published
  std::uintptr_t base, end;
};
unsigned copy_count() noexcept;
copy_info copy_at(unsigned copy) noexcept;

// Routes that handed out one of our wrappers so far.
enum route : std::uint32_t {
  route_dlsym = 1u << 0,
  route_dlvsym = 1u << 1,
  route_get_proc_address = 1u << 2,
  route_linked = 1u << 3,
};
std::uint32_t routes_seen() noexcept;

// Catalogue names for which the driver answered with a pointer that no row knows, stripped
// RTLD_DEEPBIND loads, copies beyond max_copies, dlmopen: one line each, for the report's head.
// Returns the number of bytes written (lines joined by '\n', no terminator counted).
std::size_t describe_blind_spots(char* out, std::size_t room) noexcept;
bool blind() noexcept;

// Set once at start from HOSTWAIT_OPTIONS.
struct settings {
  bool link_route = true;      // routes=nolink clears it
  bool strip_deepbind = true;  // deepbind=keep clears it
};
void configure(const settings&) noexcept;

// Loads and unloads seen so far, at least one higher after every dlclose that unmapped something:
// the unwinder's and the record's module generation.
std::uint32_t loader_generation() noexcept;

}  // namespace hostwait::resolve

// What resolve needs from the wrappers.
namespace hostwait::entry {

// Our function for a row, to be handed out in place of the driver's.
void* wrapper(row_id row, unsigned copy) noexcept;

// Whether the row is wrapped at all under the options of this process; if not, the program gets
// the driver's own pointer. Decided once at start.
bool armed(row_id row) noexcept;

}  // namespace hostwait::entry

#pragma GCC visibility pop
