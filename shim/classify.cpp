// SPDX-License-Identifier: Apache-2.0
// Copyright The hostwait authors
// The rules, one function each, and the common part around them.
#include "classify.hpp"

namespace hostwait {

namespace {

struct query {
  const call_facts& facts;
  hostwait_memory source, destination;
  const surroundings& now;
};

// What a rule says, and where that holds.
struct ruling {
  hostwait_verdict verdict = HOSTWAIT_VERDICT_NONE;
  hostwait_reason reason = HOSTWAIT_REASON_NONE;
  // Whole words: narrower ones are put together on the stack at each return, which costs 8 ns.
  std::uint64_t everywhere = true;  // documented, or true of any driver; else measured_domain only
  std::uint64_t can_break_captures = false;  // may fail and invalidate an open capture instead
};

constexpr ruling measured(ruling r) {
  r.everywhere = false;
  return r;
}
constexpr ruling breaks_captures(ruling r) {
  r.can_break_captures = true;
  return r;
}

constexpr ruling nothing() {
  return {};
}
constexpr ruling every_stream() {
  return {HOSTWAIT_VERDICT_CONTEXT};
}
constexpr ruling depends_on(hostwait_reason reason) {
  return {HOSTWAIT_VERDICT_DEPENDS, reason};
}
constexpr ruling never_measured() {
  return depends_on(HOSTWAIT_REASON_UNMEASURED);
}

// Handles of cuda.h that name the two default streams outright.
constexpr std::uint64_t legacy_handle = 1;

ruling own_stream(const call_facts& facts) {
  return {verdict_of_own_stream(facts)};
}

// What lies at one end, by signature and by the driver's answer.
enum class place { unknown, pageable, pinned, managed, device, array };

place place_of(const operand& end, hostwait_memory memory) {
  if (end.as == declared::array) return place::array;
  switch (memory) {
    case HOSTWAIT_MEMORY_PAGEABLE:
      return place::pageable;
    case HOSTWAIT_MEMORY_PINNED:
      return place::pinned;
    case HOSTWAIT_MEMORY_MANAGED:
      return place::managed;
    case HOSTWAIT_MEMORY_DEVICE:
    case HOSTWAIT_MEMORY_POOL:
      return place::device;
    case HOSTWAIT_MEMORY_ARRAY:
      return place::array;
    case HOSTWAIT_MEMORY_UNKNOWN:
      break;
  }
  return place::unknown;
}

bool host_side(place p) {
  return p == place::pageable || p == place::pinned || p == place::managed;
}

// Copies between these do not stop the host, unless the memory is marked.
bool on_device(place p) {
  return p == place::device || p == place::array;
}

// A device pointer by signature that is none: managed, or pinned memory through its mapping.
bool disguised(const operand& end, place p) {
  return end.as == declared::device && p != place::device;
}

bool is_host(const operand& end) {
  return end.as == declared::host;
}
bool is_array(const operand& end) {
  return end.as == declared::array;
}

// Largest pageable upload that is staged in one piece (measured to the byte).
constexpr std::uint64_t staging_limit = 2u << 20;
// Pageable uploads up to here travel in the queue itself (measured).
constexpr std::uint64_t inline_limit = 64u << 10;
// Inline copies of 64 KiB fill the queue fastest: the 63rd waits.
constexpr std::uint32_t queue_surely_has_room = 62;
// Without inline copies: behind one kernel, the 1022nd launch, memset or copy waits (measured).
constexpr std::uint32_t plain_queue_has_room = 1021;
constexpr std::uint32_t uploads_surely_staged = 2;
// CUlimit numbers.
constexpr std::uint64_t limit_stack_size = 0, limit_printf_fifo = 1, limit_heap = 2,
                        limit_l2_fetch = 5;

namespace rules {

ruling context(const query&) {
  return breaks_captures(every_stream());
}

ruling stream(const query& q) {
  if (q.now.capture_on_stream) return depends_on(HOSTWAIT_REASON_CAPTURE);  // it can only fail
  return breaks_captures(own_stream(q.facts));
}

ruling event(const query&) {
  return breaks_captures({HOSTWAIT_VERDICT_STREAM});
}

ruling query(const hostwait::query& q) {
  ruling r = breaks_captures(nothing());
  if (q.now.capture_on_stream) r.reason = HOSTWAIT_REASON_CAPTURE;
  return r;
}

// Documented: work without Async in its name waits on memory with SYNC_MEMOPS, device memory too.
ruling device_only(const hostwait::query& q) {
  return q.now.sync_memops && !q.facts.has_stream ? breaks_captures(own_stream(q.facts))
                                                  : nothing();
}

// A flat copy of no bytes touches no stream (measured). Shapes and batches say their size
// elsewhere.
bool of_nothing(const call_facts& facts) {
  return facts.bytes == 0 && !facts.two_dimensional;
}

// Under the unified entry points managed memory behaves as device memory (measured); it does not
// where the signature says which end is the host's.
place unified_place(const operand& end, place p) {
  return end.as == declared::unified && p == place::managed ? place::device : p;
}

// Arrays count as device memory; those rulings are documented, not measured.
ruling copy_sync(const hostwait::query& q) {
  const operand &from = q.facts.source, &to = q.facts.destination;
  if (of_nothing(q.facts)) return measured(nothing());
  // On a per-thread default stream a staged upload does not wait for the legacy stream (measured).
  if (is_host(from) && q.facts.per_thread && q.facts.bytes <= staging_limit)
    return breaks_captures(depends_on(HOSTWAIT_REASON_STAGING_LIMIT));
  if (is_host(from) || is_host(to)) return breaks_captures(own_stream(q.facts));
  const place a = place_of(from, q.source), b = place_of(to, q.destination);
  if (a == place::unknown || b == place::unknown) return never_measured();
  if (disguised(from, a) || disguised(to, b)) return never_measured();
  if (host_side(a) || host_side(b)) return breaks_captures(own_stream(q.facts));
  return device_only(q);
}

ruling copy_async(const hostwait::query& q) {
  const operand &from = q.facts.source, &to = q.facts.destination;
  if (q.now.capture_on_stream) return nothing();
  if (of_nothing(q.facts)) return measured(nothing());
  if (is_host(from) && is_host(to)) return own_stream(q.facts);
  const place a = unified_place(from, place_of(from, q.source));
  const place b = unified_place(to, place_of(to, q.destination));
  if (a == place::unknown || b == place::unknown) return never_measured();
  if (disguised(from, a) || disguised(to, b)) return never_measured();
  if (host_side(a) && host_side(b)) return own_stream(q.facts);
  if (a == place::managed || b == place::managed) return measured(own_stream(q.facts));
  if (b == place::pageable) return own_stream(q.facts);
  if (a == place::pageable) {
    const bool flat = !q.facts.two_dimensional && b == place::device;
    if (flat && q.facts.bytes <= inline_limit && q.now.queued_since_idle < queue_surely_has_room)
      return measured(nothing());
    // The third upload above the inline limit waits (measured), whatever its shape.
    if (q.facts.bytes <= staging_limit && q.now.queued_since_idle < uploads_surely_staged)
      return measured(nothing());
    if (q.facts.bytes <= staging_limit) return depends_on(HOSTWAIT_REASON_STAGING_LIMIT);
    return flat ? measured(own_stream(q.facts)) : never_measured();
  }
  return nothing();
}

// Device pointers at both ends by signature, whether the call waits by name or not.
ruling copy_device(const hostwait::query& q) {
  if (q.now.capture_on_stream) return nothing();
  if (of_nothing(q.facts)) return measured(nothing());
  const place a = place_of(q.facts.source, q.source);
  const place b = place_of(q.facts.destination, q.destination);
  if (on_device(a) && on_device(b)) return device_only(q);
  const auto measured_place = [](place p) {
    return on_device(p) || p == place::managed || p == place::pinned;
  };
  if (!measured_place(a) || !measured_place(b)) return never_measured();
  return measured(q.facts.has_stream ? nothing() : breaks_captures(own_stream(q.facts)));
}

ruling copy_peer(const hostwait::query& q) {
  const bool device_only =
      q.facts.source.as == declared::device && q.facts.destination.as == declared::device;
  if (q.facts.has_stream && q.now.capture_on_stream) return nothing();
  return device_only && q.facts.aux == q.facts.aux2 ? measured(nothing()) : never_measured();
}

// `source` and `destination` are the kinds that decide among all entries: pageable, then unknown,
// then managed. Measured in stream order: pageable uploads wait at every size, pageable downloads
// do not; a source that is read during the call, or at any time, does not wait.
ruling copy_batch(const hostwait::query& q) {
  if (q.now.capture_on_stream) return nothing();
  const bool in_order = (q.facts.aux2 & batch_in_stream_order) != 0;
  const bool shaped = (q.facts.aux2 & batch_is_3d) != 0;
  const auto on_device = [](hostwait_memory m) {
    return m == HOSTWAIT_MEMORY_DEVICE || m == HOSTWAIT_MEMORY_POOL;
  };
  const bool up = q.source == HOSTWAIT_MEMORY_PAGEABLE,
             down = q.destination == HOSTWAIT_MEMORY_PAGEABLE;
  if (in_order && !shaped && up) return measured(own_stream(q.facts));
  if (in_order && shaped && down) return measured(own_stream(q.facts));
  if (on_device(q.source) && on_device(q.destination)) return nothing();
  if (shaped) return never_measured();
  const bool other_is_device = on_device(q.source) || on_device(q.destination);
  const bool pinned = q.source == HOSTWAIT_MEMORY_PINNED || q.destination == HOSTWAIT_MEMORY_PINNED;
  if (other_is_device && (up || (in_order && down) || pinned)) return measured(nothing());
  return never_measured();
}

ruling memset_sync(const hostwait::query& q) {
  switch (place_of(q.facts.destination, q.destination)) {
    case place::device:
      return device_only(q);
    case place::pinned:
    case place::managed:
      return breaks_captures(own_stream(q.facts));
    default:
      return never_measured();
  }
}

ruling free(const hostwait::query& q) {
  if (!q.facts.destination.address) return nothing();
  return measured(q.destination == HOSTWAIT_MEMORY_POOL ? nothing() : every_stream());
}

ruling release(const hostwait::query& q) {
  return q.facts.destination.address ? measured(every_stream()) : nothing();
}

ruling alloc(const hostwait::query&) {
  return measured(nothing());
}
ruling module(const hostwait::query&) {
  return measured(every_stream());
}
ruling lazy_load(const hostwait::query&) {
  return depends_on(HOSTWAIT_REASON_LAZY_LOAD);
}

ruling limit(const hostwait::query& q) {
  if (q.facts.aux == limit_stack_size) return measured(every_stream());
  const bool known = q.facts.aux == limit_printf_fifo || q.facts.aux == limit_heap ||
                     q.facts.aux == limit_l2_fetch;
  return known ? measured(nothing()) : never_measured();
}

ruling reset(const hostwait::query&) {
  return measured(every_stream());
}
ruling measured_none(const hostwait::query&) {
  return measured(nothing());
}

ruling enqueue(const hostwait::query& q) {
  if (q.now.capture_on_stream) return nothing();
  const std::uint32_t room =
      q.now.inline_copies_queued ? queue_surely_has_room : plain_queue_has_room;
  if (q.now.queued_since_idle < room) return measured(nothing());
  return depends_on(HOSTWAIT_REASON_QUEUE_DEPTH);
}

ruling launch(const hostwait::query& q) {
  if (q.now.launch_blocking && !q.now.capture_on_stream) return own_stream(q.facts);
  // The first launch of a kernel that needs a bigger local-memory stack waited for every stream.
  if (q.now.new_function && !q.now.capture_on_stream) return depends_on(HOSTWAIT_REASON_LAZY_LOAD);
  return enqueue(q);
}

// A graph with a copy into pageable memory waits for its own stream; what a graph holds is not
// among the arguments.
ruling graph_launch(const hostwait::query& q) {
  const ruling r = launch(q);
  return r.verdict == HOSTWAIT_VERDICT_NONE && !q.now.capture_on_stream
             ? depends_on(HOSTWAIT_REASON_GRAPH_NODES)
             : r;
}

ruling unmeasured(const hostwait::query&) {
  return never_measured();
}

ruling state(const hostwait::query&) {
  return nothing();
}
// Nobody expects a wait there: a call that stays long is shown as held.
ruling audit(const hostwait::query&) {
  return nothing();
}

}  // namespace rules

using rule_function = ruling (*)(const query&);
constexpr rule_function rule_table[] = {
#define HW_RULE(name, waits, not_when, basis) rules::name,
    HW_RULES
#undef HW_RULE
};
static_assert(sizeof(rule_table) / sizeof(rule_table[0]) == static_cast<unsigned>(rule_id::count));

bool host_like(const operand& end, hostwait_memory memory) {
  return is_host(end) || host_side(place_of(end, memory));
}

hostwait_direction direction_of(const query& q) {
  if (q.facts.source.as == declared::nothing || q.facts.destination.as == declared::nothing)
    return HOSTWAIT_DIRECTION_NONE;
  const auto undecided = [](const operand& end, hostwait_memory memory) {
    return end.as == declared::unified && memory == HOSTWAIT_MEMORY_UNKNOWN;
  };
  if (undecided(q.facts.source, q.source) || undecided(q.facts.destination, q.destination))
    return HOSTWAIT_DIRECTION_NONE;
  const bool from_host = host_like(q.facts.source, q.source);
  const bool to_host = host_like(q.facts.destination, q.destination);
  if (from_host) return to_host ? HOSTWAIT_DIRECTION_H2H : HOSTWAIT_DIRECTION_H2D;
  return to_host ? HOSTWAIT_DIRECTION_D2H : HOSTWAIT_DIRECTION_D2D;
}

hostwait_memory memory_of(const operand& end, hostwait_memory asked) {
  return is_array(end) ? HOSTWAIT_MEMORY_ARRAY : asked;
}

}  // namespace

// The stream a call runs on is the legacy one if it says so, or says nothing in the legacy form.
hostwait_verdict verdict_of_own_stream(const call_facts& facts) noexcept {
  const bool legacy =
      facts.has_stream && facts.stream != 0 ? facts.stream == legacy_handle : !facts.per_thread;
  return legacy ? HOSTWAIT_VERDICT_LEGACY : HOSTWAIT_VERDICT_STREAM;
}

pointer_needs needs_of(rule_id rule, const call_facts& facts) noexcept {
  // An array is known by its signature.
  const bool from = facts.source.address && !is_array(facts.source);
  const bool to = facts.destination.address && !is_array(facts.destination);
  switch (rule) {
    case rule_id::copy_sync:  // a host end by signature decides alone
      if (is_host(facts.source) || is_host(facts.destination)) return {};
      return {from, to};
    case rule_id::copy_device:
      return {from, to};
    case rule_id::copy_async:
      if (is_host(facts.source) && is_host(facts.destination)) return {};
      return {from, to};
    case rule_id::memset_sync:
    case rule_id::free:
      return {false, to};
    default:
      return {};
  }
}

judgement classify(rule_id rule, const call_facts& facts, hostwait_memory source,
                   hostwait_memory destination, const surroundings& now) noexcept {
  const query q{facts, source, destination, now};
  ruling r = rule_table[static_cast<unsigned>(rule)](q);
  if (!r.everywhere && !measured_domain.holds(now))
    r = {HOSTWAIT_VERDICT_UNMEASURED, HOSTWAIT_REASON_UNMEASURED};
  if (r.can_break_captures && now.capture_open) r.reason = HOSTWAIT_REASON_CAPTURE;
  return {r.verdict, r.reason, direction_of(q), memory_of(facts.source, source),
          memory_of(facts.destination, destination)};
}

pointer_needs needs_of(row_id row, const call_facts& facts) noexcept {
  return needs_of(rows[row].rule, facts);
}

judgement classify(row_id row, const call_facts& facts, hostwait_memory source,
                   hostwait_memory destination, const surroundings& now) noexcept {
  return classify(rows[row].rule, facts, source, destination, now);
}

// Measured on an idle device, longest of several calls: a wait for a blocking-sync event 176 us, a
// copy of 4 bytes 74 us, 1 MiB into pages that were never touched 1.0 ms, a memset of 4 managed
// bytes 235 us, freeing 1 GiB 0.5 ms, unpinning 64 MiB 10.7 ms. The arguments of a free do not tell
// the size; where the driver has told it, unpinning is given 5 GB/s. Nor do those of a wait for an
// event tell whether its thread sleeps meanwhile and has to be woken.
constexpr std::uint64_t slow_copy_bases = 3, event_bases = 2;
constexpr std::uint64_t free_floor_ns = 1'000'000, unpin_bytes_per_ns = 5;
constexpr std::uint64_t unpin_floor_ns = 1'000'000, unpin_unknown_size_ns = 10'000'000;

std::uint64_t own_cost_ns(row_id row, const call_facts& facts, std::uint64_t base_us,
                          std::uint64_t gb_per_s, bool managed) noexcept {
  const std::uint64_t base = base_us * 1000;
  switch (rows[row].kind) {
    case HOSTWAIT_KIND_COPY:
    case HOSTWAIT_KIND_ASYNC_COPY:
    case HOSTWAIT_KIND_MEMSET:
      // Managed memory may have to move first; a batch does not say its size. 1 GB/s is a byte per
      // nanosecond.
      return base * (managed || facts.bytes == 0 ? slow_copy_bases : 1) +
             (gb_per_s ? facts.bytes / gb_per_s : 0);
    case HOSTWAIT_KIND_EVENT_SYNC:
      return base * event_bases;
    case HOSTWAIT_KIND_FREE:
      return base > free_floor_ns ? base : free_floor_ns;
    case HOSTWAIT_KIND_HOST_FREE:
      return facts.bytes != 0 ? base + unpin_floor_ns + facts.bytes / unpin_bytes_per_ns
                              : base + unpin_unknown_size_ns;
    default:
      return base;
  }
}

bool own_cost_known(row_id row) noexcept {
  switch (rows[row].kind) {
    case HOSTWAIT_KIND_ALLOC:
    case HOSTWAIT_KIND_MODULE:
    case HOSTWAIT_KIND_CONTEXT:
      return false;
    default:
      return true;
  }
}

}  // namespace hostwait
