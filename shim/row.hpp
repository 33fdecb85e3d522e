// SPDX-License-Identifier: Apache-2.0
// Copyright The hostwait authors
// The table of driver calls: one row per exported symbol, expanded from table.def.
#pragma once

#include <cstdint>
#include <string_view>

#include "hostwait/record.h"

// -fvisibility=hidden does not reach declarations: without this, code that runs before the library
// is relocated would load their addresses from the GOT (x86-64's linker undoes that, aarch64's
// not).
#pragma GCC visibility push(hidden)

namespace hostwait {

enum class row_type : std::uint8_t {
  wait,      // the host may wait inside it
  pressure,  // an enqueue call: wrapped only when queue_full is armed
  state,     // policy or captures need to see it; never a finding by itself
  audit,     // any other call: wrapped only when unlisted is armed, in the first copy of libcuda
};

enum row_id : std::uint16_t {
#define HW_ROW(symbol, type, kind, rule, roles) row_##symbol,
#define HW_AUDIT(symbol, reason) row_##symbol,
#include "table.def"
#undef HW_ROW
#undef HW_AUDIT
  row_count
};

// How classify() judges a row: rules.hpp.
enum class rule_id : std::uint8_t;

struct row_info {
  const char* symbol;
  row_type type;
  hostwait_kind_number kind;
  rule_id rule;
};

extern const row_info rows[row_count];

// Whether the null stream means the calling thread's own default stream: the forms with a stream
// argument end in _ptsz, those with an implied stream in _ptds.
constexpr bool names_per_thread(std::string_view symbol) noexcept {
  return symbol.ends_with("_ptsz") || symbol.ends_with("_ptds");
}
inline constexpr bool per_thread_rows[row_count] = {
#define HW_ROW(symbol, type, kind, rule, roles) names_per_thread(#symbol),
#define HW_AUDIT(symbol, reason) names_per_thread(#symbol),
#include "table.def"
#undef HW_ROW
#undef HW_AUDIT
};
constexpr bool row_is_per_thread(row_id row) noexcept {
  return per_thread_rows[row];
}

}  // namespace hostwait

#pragma GCC visibility pop
