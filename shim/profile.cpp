// SPDX-License-Identifier: Apache-2.0
// Copyright The hostwait authors
#include "profile.hpp"

#include <cstring>

namespace hostwait {

namespace {

struct word {
  const char* at = nullptr;
  std::size_t bytes = 0;
  bool is(const char* text) const noexcept {
    return std::strlen(text) == bytes && std::memcmp(at, text, bytes) == 0;
  }
};

// Takes the next field of a tab-separated line; an empty one at its end.
word next_field(const char*& at, const char* end) noexcept {
  word w{at, 0};
  while (at < end && *at != '\t') ++at;
  w.bytes = static_cast<std::size_t>(at - w.at);
  if (at < end) ++at;
  return w;
}

bool number(const word& w, std::uint64_t& out) noexcept {
  if (w.bytes == 0 || w.bytes > 20) return false;
  std::uint64_t value = 0;
  for (std::size_t i = 0; i < w.bytes; ++i) {
    const unsigned digit = static_cast<unsigned char>(w.at[i]) - unsigned{'0'};
    if (digit > 9 || value > (~std::uint64_t{0} - digit) / 10) return false;
    value = value * 10 + digit;
  }
  out = value;
  return true;
}

bool number_or_any(const word& w, std::uint64_t& out) noexcept {
  return w.is("*") || number(w, out);
}

bool memory_named(const word& w, std::uint8_t& out) noexcept {
  static constexpr const char* names[] = {"-",       "pageable", "pinned", "device",
                                          "managed", "array",    "pool"};
  if (w.is("*")) {
    out = profile_entry::any_memory;
    return true;
  }
  for (std::size_t i = 0; i < sizeof names / sizeof *names; ++i)
    if (w.is(names[i])) {
      out = static_cast<std::uint8_t>(i);
      return true;
    }
  return false;
}

bool waits_named(const word& w, profile_entry::waits& out) noexcept {
  using waits = profile_entry::waits;
  static constexpr const char* names[] = {"none", "own", "context", "depends"};
  for (std::size_t i = 0; i < sizeof names / sizeof *names; ++i)
    if (w.is(names[i])) {
      out = static_cast<waits>(i);
      return true;
    }
  return false;
}

row_id row_named(const word& w) noexcept {
  for (unsigned i = 0; i < row_count; ++i)
    if (w.is(rows[i].symbol)) return static_cast<row_id>(i);
  return row_count;
}

}  // namespace

void verdict_profile::clear() noexcept {
  used_ = left_out_ = 0;
  driver_version_ = compute_capability_ = 0;
  std::memset(first_, 0, sizeof first_);
  std::memset(last_, 0, sizeof last_);
}

// Null: understood.
const char* verdict_profile::parse_line(const char* at, const char* end) noexcept {
  const word symbol = next_field(at, end);
  if (symbol.is("device")) {
    next_field(at, end);  // its name
    std::uint64_t capability = 0, version = 0;
    if (!number(next_field(at, end), capability) || !number(next_field(at, end), version) ||
        capability > 1000 || version > 1'000'000)
      return "wants: device, name, compute capability times ten, driver version";
    compute_capability_ = static_cast<int>(capability);
    driver_version_ = static_cast<int>(version);
    return nullptr;
  }
  profile_entry e;
  if (!memory_named(next_field(at, end), e.source)) return "unknown kind of source memory";
  if (!memory_named(next_field(at, end), e.destination))
    return "unknown kind of destination memory";
  if (!number_or_any(next_field(at, end), e.min_bytes)) return "smallest size is no number";
  if (!number_or_any(next_field(at, end), e.max_bytes)) return "largest size is no number";
  const word aux = next_field(at, end);
  if (aux.is("=")) {
    e.match = profile_entry::aux_match::equal;
  } else if (!aux.is("*")) {
    if (!number(aux, e.aux)) return "argument is no number, = or *";
    e.match = profile_entry::aux_match::number;
  }
  if (!waits_named(next_field(at, end), e.what))
    return "verdict is not none, own, context, depends";
  if (at != end) return "more fields than seven";
  e.row = row_named(symbol);
  if (e.row == row_count) {
    ++left_out_;
    return nullptr;
  }
  if (used_ == capacity) return "too many lines";
  list_[++used_] = e;
  const auto index = static_cast<std::uint16_t>(used_);
  if (first_[e.row] == 0)
    first_[e.row] = index;
  else
    list_[last_[e.row]].next = index;
  last_[e.row] = index;
  return nullptr;
}

bool verdict_profile::parse(const char* text, std::size_t bytes,
                            profile_problem& problem) noexcept {
  clear();
  const char *at = text, *const end = text + bytes;
  problem = {};
  while (at < end) {
    ++problem.line;
    const void* found = std::memchr(at, '\n', static_cast<std::size_t>(end - at));
    const char* stop = found != nullptr ? static_cast<const char*>(found) : end;
    const word whole{at, static_cast<std::size_t>(stop - at)};
    const char* wrong = nullptr;
    if (problem.line == 1)
      wrong = whole.is("hostwait-profile 1") ? nullptr : "first line is not: hostwait-profile 1";
    else if (whole.bytes != 0 && *at != '#')
      wrong = parse_line(at, stop);
    if (wrong != nullptr) {
      problem.what = wrong;
      clear();
      return false;
    }
    at = stop < end ? stop + 1 : end;
  }
  if (problem.line == 0) problem.what = "empty";
  return problem.line != 0;
}

const profile_entry* verdict_profile::find(row_id row, const call_facts& facts,
                                           hostwait_memory source,
                                           hostwait_memory destination) const noexcept {
  const auto fits = [](std::uint8_t wanted, hostwait_memory kind) {
    return wanted == profile_entry::any_memory || wanted == kind;
  };
  for (unsigned i = first_[row]; i != 0; i = list_[i].next) {
    const profile_entry& e = list_[i];
    if (!fits(e.source, source) || !fits(e.destination, destination)) continue;
    if (facts.bytes < e.min_bytes || facts.bytes > e.max_bytes) continue;
    if (e.match == profile_entry::aux_match::number && facts.aux != e.aux) continue;
    if (e.match == profile_entry::aux_match::equal && facts.aux != facts.aux2) continue;
    return &e;
  }
  return nullptr;
}

bool profile_override(const verdict_profile& profile, row_id row, const call_facts& facts,
                      hostwait_memory source, hostwait_memory destination, const surroundings& now,
                      judgement& verdict) noexcept {
  const auto other = [](int known, int ours) { return known != 0 && ours != 0 && known != ours; };
  if (other(now.driver_version, profile.driver_version()) ||
      other(now.compute_capability, profile.compute_capability()))
    return false;
  const auto null = [](const operand& end) {
    return end.as != declared::nothing && end.address == nullptr;
  };
  if (null(facts.source) || null(facts.destination) || now.capture_on_stream) return false;
  if (now.launch_blocking && rows[row].type == row_type::pressure) return false;
  const profile_entry* e = profile.find(row, facts, source, destination);
  if (e == nullptr) return false;
  switch (e->what) {
    case profile_entry::waits::nothing:
      verdict.verdict = HOSTWAIT_VERDICT_NONE;
      break;
    case profile_entry::waits::own:
      verdict.verdict = verdict_of_own_stream(facts);
      break;
    case profile_entry::waits::context:
      verdict.verdict = HOSTWAIT_VERDICT_CONTEXT;
      break;
    case profile_entry::waits::depends:
      verdict.verdict = HOSTWAIT_VERDICT_DEPENDS;
      verdict.reason = HOSTWAIT_REASON_UNMEASURED;
      return true;
  }
  if (verdict.reason != HOSTWAIT_REASON_CAPTURE) verdict.reason = HOSTWAIT_REASON_NONE;
  return true;
}

}  // namespace hostwait
