// SPDX-License-Identifier: Apache-2.0
// Copyright The hostwait authors
// The table as data.
#include "row.hpp"

#include "classify.hpp"

namespace hostwait {

const row_info rows[row_count] = {
#define HW_ROW(symbol, type, kind, rule, roles) \
  {#symbol, row_type::type, HOSTWAIT_KIND_##kind, rule_id::rule},
#define HW_AUDIT(symbol, reason) {#symbol, row_type::audit, HOSTWAIT_KIND_UNLISTED, rule_id::audit},
#include "table.def"
#undef HW_ROW
#undef HW_AUDIT
};

}  // namespace hostwait
