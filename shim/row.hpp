// SPDX-License-Identifier: Apache-2.0
// Copyright The hostwait authors
// The table of driver calls: one row per exported symbol, expanded from calls.def.
#pragma once

#include <cstdint>

#include "hostwait/record.h"

namespace hostwait {

enum class row_type : std::uint8_t {
  wait,      // the host may wait inside it
  pressure,  // an enqueue call: wrapped only when queue_full is armed
  state,     // policy or captures need to see it; never a finding by itself
};

enum row_id : std::uint16_t {
#define HW_ROW(symbol, type, kind, rule, roles) row_##symbol,
#include "calls.def"
#undef HW_ROW
  row_count
};

// How classify() judges a row: the names of the rules stand in classify.hpp.
enum class rule_id : std::uint8_t;

struct row_info {
  const char* symbol;
  row_type type;
  hostwait_kind_number kind;
  rule_id rule;
};

extern const row_info rows[row_count];

}  // namespace hostwait
