// SPDX-License-Identifier: Apache-2.0
// Copyright The hostwait authors
// Violations as the program itself learns of them: the callback and the last refused call.
#include <cstring>

#include "entry.hpp"

namespace hostwait::entry {

namespace {

std::atomic<hostwait_callback> the_callback{nullptr};
std::atomic<void*> callback_user{nullptr};
std::atomic<std::uint64_t> last_id{0};

// Structs begin with their size: a caller built against an older header gets what it knows.
void give(hostwait_finding* out, const hostwait_finding& finding) noexcept {
  const std::uint32_t room = out->size < sizeof finding ? out->size : sizeof finding;
  std::memcpy(out, &finding, room);
  out->size = room;
}

}  // namespace

void report_violation(const call_context& call, std::uint64_t ns, bool refused) noexcept {
  const std::uint64_t id = last_id.fetch_add(1, std::memory_order_relaxed) + 1;
  state::thread_block& t = state::tls;
  if (refused) {
    t.refused_id = id;
    t.refused_row = call.row;
    t.refused_verdict = call.verdict.verdict;
    t.refused_action = call.action;
    t.refused_bytes = call.facts.bytes;
  }
  const hostwait_callback tell = the_callback.load(std::memory_order_acquire);
  if (tell == nullptr) return;
  char label[policy::label_bytes];
  state::copy_label(t, label);
  hostwait_finding finding;
  finding.size = sizeof finding;
  finding.kind = 1u << rows[call.row].kind;
  finding.action = static_cast<hostwait_action>(call.action);
  finding.verdict = call.verdict.verdict;
  finding.call = rows[call.row].symbol;
  finding.label = label;
  finding.id = id;
  finding.bytes = call.facts.bytes;
  finding.ns = ns;
  finding.thread_id = state::thread_id();
  tell(&finding, callback_user.load(std::memory_order_relaxed));
}

int set_callback(hostwait_callback callback, void* user) noexcept {
  the_callback.store(nullptr, std::memory_order_release);
  callback_user.store(user, std::memory_order_release);
  the_callback.store(callback, std::memory_order_release);
  return 0;
}

int last_refused(hostwait_finding* out) noexcept {
  const state::thread_block& t = state::tls;
  if (out == nullptr || out->size < sizeof(std::uint32_t)) return HOSTWAIT_INVALID;
  if (t.refused_id == 0) return HOSTWAIT_NOT_AVAILABLE;
  hostwait_finding finding = {};
  finding.kind = 1u << rows[t.refused_row].kind;
  finding.action = static_cast<hostwait_action>(t.refused_action);
  finding.verdict = t.refused_verdict;
  finding.call = rows[t.refused_row].symbol;
  finding.label = "";
  finding.id = t.refused_id;
  finding.bytes = t.refused_bytes;
  finding.thread_id = state::thread_id();
  give(out, finding);
  return 0;
}

}  // namespace hostwait::entry
