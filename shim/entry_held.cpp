// SPDX-License-Identifier: Apache-2.0
// Copyright The hostwait authors
// Victim and holder: which other thread was inside which call while this one stayed long.
#include "entry.hpp"

namespace hostwait::entry {

void note_long_call(const call_context& call, std::uint64_t end_ns) noexcept {
  if (record::hold_rank(rows[call.row].kind) == 0) return;
  site_storage storage;
  const std::uint32_t site = record::site_of(call.writer, key_of(call, storage));
  record::note_long_call(call.writer, call.row, site, call.start_ns, end_ns);
}

bool note_held(const call_context& call, std::uint64_t end_ns, unsigned least_rank) noexcept {
  record::holder who;
  if (!record::find_holder(call.writer, call.start_ns, end_ns, least_rank, who)) return false;
  site_storage storage;
  const std::uint32_t site = record::site_of(call.writer, key_of(call, storage));
  record::note_held(call.writer, site, who, end_ns - call.start_ns);
  return true;
}

}  // namespace hostwait::entry
