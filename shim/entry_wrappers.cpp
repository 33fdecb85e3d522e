// SPDX-License-Identifier: Apache-2.0
// Copyright The hostwait authors
// The functions that programs call instead of the driver's: one per row and copy of libcuda.
// signatures.hpp first: it decides how cuda.h declares the versions.
// clang-format off
#include "signatures.hpp"
// clang-format on
#include "entry.hpp"
#include "resolve.hpp"
#include "roles.hpp"

namespace hostwait::entry {

namespace {

using state::thread_block;
using state::tls;

constexpr row_type type_of(row_id row) noexcept {
  constexpr row_type types[row_count] = {
#define HW_ROW(symbol, type, kind, rule, shape) row_type::type,
#define HW_AUDIT(symbol, reason) row_type::audit,
#include "table.def"
#undef HW_ROW
#undef HW_AUDIT
  };
  return types[row];
}

constexpr hostwait_kind_number kind_of(row_id row) noexcept {
  constexpr hostwait_kind_number kinds[row_count] = {
#define HW_ROW(symbol, type, kind, rule, shape) HOSTWAIT_KIND_##kind,
#define HW_AUDIT(symbol, reason) HOSTWAIT_KIND_UNLISTED,
#include "table.def"
#undef HW_ROW
#undef HW_AUDIT
  };
  return kinds[row];
}

template <row_id Row, unsigned Copy, class Roles, class Function>
struct wrap;

template <row_id Row, unsigned Copy, class Roles, class... A>
struct wrap<Row, Copy, Roles, CUresult(A...)> {
  using function = CUresult (*)(A...);

  // A symbol that this copy of the driver does not export was never handed out; a program can
  // reach its wrapper only through a stale link.
  static function real() noexcept { return reinterpret_cast<function>(resolve::real(Row, Copy)); }

  static call_facts facts_of(A... args) noexcept {
    call_facts facts = Roles::of(args...);
    facts.per_thread = row_is_per_thread(Row);
    return facts;
  }

  __attribute__((noinline)) static CUresult slow(A... args) noexcept {
    const function make = real();
    if (__builtin_expect(make == nullptr, 0)) return CUDA_ERROR_NOT_FOUND;
    call_context call;
    call.row = Row;
    call.copy = Copy;
    call.facts = facts_of(args...);
    call.caller = caller_of(__builtin_frame_address(0), __builtin_dwarf_cfa());
    switch (before(call)) {
      case path::through:
        return make(args...);
      case path::refuse:
        return CUDA_ERROR_NOT_PERMITTED;
      case path::record:
        break;
    }
    const CUresult result = make(args...);
    after(call, result);
    return result;
  }

  static CUresult call(A... args) noexcept {
    if constexpr (type_of(Row) == row_type::state) {
      const function make = real();
      if (__builtin_expect(make == nullptr, 0)) return CUDA_ERROR_NOT_FOUND;
      // Read before the driver writes over them (cuThreadExchangeStreamCaptureMode).
      const call_facts facts = facts_of(args...);
      const int noted =
          before_state(Row, facts, caller_of(__builtin_frame_address(0), __builtin_dwarf_cfa()));
      const CUresult result = make(args...);
      after_state(Row, facts, result, noted);
      return result;
    } else {
      // Queries are wrapped for the captures that they can break: while none is open, and polls are
      // not watched, they cost a load and a branch.
      if constexpr (kind_of(Row) == HOSTWAIT_KIND_POLL) {
        if (__builtin_expect(captures::queries_watched.load(std::memory_order_relaxed) == 0, 1)) {
          if (const function make = real(); __builtin_expect(make != nullptr, 1))
            return make(args...);
        }
      }
      if constexpr (type_of(Row) == row_type::pressure) {
        if (!note_enqueue()) {
          const function make = real();
          return make != nullptr ? make(args...) : CUDA_ERROR_NOT_FOUND;
        }
      }
      thread_block& t = tls;
      const bool current = t.epoch == state::policy_epoch.load(std::memory_order_relaxed);
      if (__builtin_expect(
              current && policy::action_of(t.effective, kind_of(Row)) == HOSTWAIT_ALLOW, 1)) {
        // Every 64th allowed call takes the long way, where the control word is looked at.
        if (__builtin_expect((++t.allowed & 63) != 0, 1)) {
          if (const function make = real(); __builtin_expect(make != nullptr, 1))
            return make(args...);
        }
      }
      return slow(args...);
    }
  }
};

#define HW_ROW(symbol, form, kind, rule, shape)                                    \
  {reinterpret_cast<void*>(                                                        \
       &wrap<row_##symbol, 0, roles::shape, signature<row_##symbol>::type>::call), \
   reinterpret_cast<void*>(                                                        \
       &wrap<row_##symbol, 1, roles::shape, signature<row_##symbol>::type>::call), \
   reinterpret_cast<void*>(                                                        \
       &wrap<row_##symbol, 2, roles::shape, signature<row_##symbol>::type>::call), \
   reinterpret_cast<void*>(                                                        \
       &wrap<row_##symbol, 3, roles::shape, signature<row_##symbol>::type>::call)},
#define HW_AUDIT(symbol, reason)                                                  \
  {reinterpret_cast<void*>(                                                       \
       &wrap<row_##symbol, 0, roles::none, signature<row_##symbol>::type>::call), \
   nullptr, nullptr, nullptr},
void* const wrappers[row_count][resolve::max_copies] = {
#include "table.def"
};
#undef HW_ROW
#undef HW_AUDIT

}  // namespace

void* wrapper(row_id row, unsigned copy) noexcept {
  return wrappers[row][copy];
}

bool armed(row_id row) noexcept {
  switch (rows[row].type) {
    case row_type::state:
      return true;
    case row_type::pressure:
      return (state::settings().armed & HOSTWAIT_QUEUE_FULL) != 0 || state::settings().gap;
    case row_type::audit:
    case row_type::wait:
      break;
  }
  if (rows[row].kind == HOSTWAIT_KIND_POLL) return true;  // they can break an open capture
  return ((state::settings().armed >> rows[row].kind) & 1) != 0;
}

}  // namespace hostwait::entry
