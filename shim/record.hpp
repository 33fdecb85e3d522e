// SPDX-License-Identifier: Apache-2.0
// Copyright The hostwait authors
// The writer of the record (format: include/hostwait/record.h). No malloc, no lock that blocks, no
// system call on the path of a known site.
#pragma once

#include <cstddef>
#include <cstdint>

#include "classify.hpp"
#include "row.hpp"
#include "sys.hpp"

namespace hostwait::record {

inline constexpr std::uint32_t default_max_sites = 65536;

struct settings {
  const char* output_dir;    // null: the live folder
  std::uint32_t max_sites;   // beyond it: the "other" site; 0: default_max_sites
  const char* options_text;  // HOSTWAIT_OPTIONS as given, for the header
  bool config_error;
};
// The texts must stay where they are. Also the start-up that say_line() speaks of.
void configure(const settings&) noexcept;

// Keeps in mind which file descriptor 2 is; the first call decides.
void remember_stderr() noexcept;
// One line on stderr ("hostwait: " before it, a newline after it, in one write), only while
// descriptor 2 is still the file of start-up: a daemon's own descriptor 2 is not ours to write to.
bool say_line(const char* line) noexcept;

// Opens the record of this process at its first catalogued call. Cheap when open. False: nothing
// can be recorded (then calls are only made). Notices fork and raw clone by itself
// (MADV_WIPEONFORK word): a child starts from zero with its own file.
HOSTWAIT_HOT bool ensure_open() noexcept;

// Number of the record in this process and its ancestors: what was interned under another number
// means nothing.
std::uint32_t epoch() noexcept;

// A part of a key that cannot be had at this moment: the call counts at the "other" site, since
// half a stack would be a wrong one.
inline constexpr std::uint32_t not_now = 0xffffffffu;

// Everything that makes two calls the same finding.
struct site_key {
  row_id row;
  judgement verdict;
  const std::uintptr_t* native;  // return addresses, innermost first
  std::uint32_t native_depth;
  std::uint32_t python;  // frame id from intern_python(), 0 = none, or not_now
  const char* label;     // "" = none; at most 63 bytes
  std::uint32_t range;   // from intern_range(), 0 = none, or not_now
  bool in_capture;
  bool audit = false;  // not a call: see HOSTWAIT_SITE_AUDIT
  bool gap = false;    // not a call: see HOSTWAIT_SITE_GAP
  // Not part of the identity; kept for the first call of the site:
  std::uint64_t bytes, stream;
};

enum class outcome : std::uint8_t { counted, waited, latent, refused, held };

struct observation {
  outcome what;
  bool violation;
  std::uint64_t ns;
};

// The two entries that a (thread, site) pair counts in.
struct tally {
  hostwait_record_counters* counters = nullptr;
  hostwait_record_histogram* histogram = nullptr;
};

// The calling thread's part of the record; opaque to callers, one pointer in thread-local storage.
struct thread_writer;

// Registers the calling thread (on its first recorded call) and returns its writer; null when no
// more threads can be told apart (then its calls go to the folded entry).
HOSTWAIT_HOT thread_writer* this_thread() noexcept;

// Where the calls of a site count. Found before the call, so that the thread's slot can say where a
// call that never returns was made. Null pointers: it cannot be had now; note() tries again.
HOSTWAIT_HOT tally tally_of(thread_writer*, const site_key&) noexcept;

// The thread's slot says which call it is in, and where: a hang shows itself.
HOSTWAIT_HOT void enter(thread_writer*, row_id row, const tally& at,
                        std::uint64_t now_mono_ns) noexcept;
HOSTWAIT_HOT void leave(thread_writer*) noexcept;

void note(thread_writer*, const site_key&, const observation&) noexcept;
HOSTWAIT_HOT void note(thread_writer*, const tally&, const observation&) noexcept;

// With gap=1: from the end of a wait until the calling thread queues work again. `at` belongs to a
// key with `gap`.
void gap_begins(thread_writer*, const tally& at, std::uint64_t now_mono_ns) noexcept;
bool gap_is_open() noexcept;
void gap_ends(std::uint64_t now_mono_ns) noexcept;

// The number of a site, which need not have been counted; HOSTWAIT_CAPTURE_NO_SITE where it cannot
// be had.
std::uint32_t site_of(thread_writer*, const site_key&) noexcept;

struct thread_identity {
  std::uint32_t tid;
  char name[16];
};
thread_identity identity_of_thread(const thread_writer*) noexcept;

// A capture that was broken: `seen` holds the first values, its count and violations are added.
void note_capture(const hostwait_record_capture& seen) noexcept;

// Who holds others up. Measured on an H200: freeing, unpinning, loading and context set-up hold
// calls on other threads while they wait for the GPU; copies that wait hold a few; waits hold none.
inline constexpr unsigned surely_holds = 2;
constexpr unsigned hold_rank(unsigned kind) noexcept {
  switch (kind) {
    case HOSTWAIT_KIND_FREE:
    case HOSTWAIT_KIND_HOST_FREE:
    case HOSTWAIT_KIND_MODULE:
    case HOSTWAIT_KIND_CONTEXT:
      return surely_holds;
    case HOSTWAIT_KIND_COPY:
    case HOSTWAIT_KIND_ASYNC_COPY:
    case HOSTWAIT_KIND_MEMSET:
    case HOSTWAIT_KIND_ALLOC:
    case HOSTWAIT_KIND_QUEUE_FULL:
      return 1;
    default:
      return 0;
  }
}
struct holder {
  std::uint32_t call, site_plus_1, tid;  // site_plus_1: 0 = not known yet
  std::uint32_t thread;                  // index into threads
  char name[16];
  std::uint64_t since_ns;
};
// The call on another thread, of at least that rank, that was in progress for at least half of the
// time; the highest rank, then the longest. Looks at every thread's slot, without a lock.
bool find_holder(const thread_writer* self, std::uint64_t since_ns, std::uint64_t until_ns,
                 unsigned least_rank, holder& out) noexcept;
void note_held(thread_writer*, std::uint32_t site, const holder&, std::uint64_t ns) noexcept;
// Before leave(): leaves what the thread was in for long where others find it.
void note_long_call(thread_writer*, row_id row, std::uint32_t site, std::uint64_t since_ns,
                    std::uint64_t until_ns) noexcept;

// Totals over all threads, for hostwait_stats_get.
struct totals {
  std::uint64_t calls, waited, latent, refused, held, violations, waited_ns;
};
totals sum() noexcept;

// 0: none (the text is empty, no record is open), or no room for it; the record is then marked.
std::uint32_t intern_string(const char* text) noexcept;
// These three answer not_now where the lock could not be had: what they would say is not known, and
// nothing may be built on it or kept.
std::uint32_t intern_range(const char* path) noexcept;
// One Python frame on top of `parent`; code from intern_python_code.
std::uint32_t intern_python_code(const char* file, const char* qualname,
                                 std::uint32_t first_line) noexcept;
std::uint32_t intern_python(std::uint32_t parent, std::uint32_t code, std::uint32_t line) noexcept;

// Live control words written by `hostwait set`; the writer of the header's coverage fields.
const hostwait_record_control* control() noexcept;  // null before ensure_open()
void set_driver(std::uint32_t version, const char* text) noexcept;
void set_coverage(std::uint32_t routes, bool blind, const char* why,
                  std::size_t why_bytes) noexcept;
// What the report's head should say of Python stacks. False: not now (a lock was held).
bool set_python_note(const char* text) noexcept;
void count_mismatched_pop() noexcept;
// hostwait_step (steady = false) and hostwait_steady: one entry of section `steps` each, bounded.
void step(bool steady) noexcept;
void count_allowed(thread_writer*, std::uint64_t calls) noexcept;

// At exit: marks the record sealed. The data need no flush.
void seal() noexcept;

}  // namespace hostwait::record
