// SPDX-License-Identifier: Apache-2.0
// Copyright The hostwait authors
// What is asked before a call is judged: the driver, about memory and streams; the process, about
// captures.
#include <cuda.h>

#include <cstdlib>
#include <cstring>

#include "captures.hpp"
#include "entry.hpp"
#include "profile_file.hpp"
#include "resolve.hpp"

namespace hostwait::entry {

namespace {

using attribute_query = CUresult (*)(unsigned, CUpointer_attribute*, void**, CUdeviceptr);

// The plural form: the singular one reports an error on pageable memory.
hostwait_memory memory_kind(unsigned copy, const operand& end, bool& sync_memops) noexcept {
  if (end.as == declared::array) return HOSTWAIT_MEMORY_ARRAY;
  if (end.address == nullptr) return HOSTWAIT_MEMORY_UNKNOWN;
  const auto ask = reinterpret_cast<attribute_query>(
      resolve::helper(resolve::helper_id::pointer_attributes, copy));
  if (ask == nullptr) return HOSTWAIT_MEMORY_UNKNOWN;
  unsigned type = 0;
  unsigned managed = 0, synchronous = 0;
  CUmemoryPool pool = nullptr;
  CUpointer_attribute names[] = {CU_POINTER_ATTRIBUTE_MEMORY_TYPE, CU_POINTER_ATTRIBUTE_IS_MANAGED,
                                 CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE,
                                 CU_POINTER_ATTRIBUTE_SYNC_MEMOPS};
  void* values[] = {&type, &managed, &pool, &synchronous};
  if (ask(4, names, values, reinterpret_cast<CUdeviceptr>(end.address)) != CUDA_SUCCESS)
    return HOSTWAIT_MEMORY_UNKNOWN;
  if ((synchronous & 0xff) != 0) sync_memops = true;
  if ((managed & 0xff) != 0) return HOSTWAIT_MEMORY_MANAGED;
  switch (type) {
    case 0:
      return HOSTWAIT_MEMORY_PAGEABLE;
    case CU_MEMORYTYPE_HOST:
      return HOSTWAIT_MEMORY_PINNED;
    case CU_MEMORYTYPE_ARRAY:
      return HOSTWAIT_MEMORY_ARRAY;
    default:
      return pool != nullptr ? HOSTWAIT_MEMORY_POOL : HOSTWAIT_MEMORY_DEVICE;
  }
}

// What an address was allocated or registered with; 0 where the driver does not know.
std::uint64_t range_bytes(unsigned copy, const void* address) noexcept {
  const auto ask = reinterpret_cast<attribute_query>(
      resolve::helper(resolve::helper_id::pointer_attributes, copy));
  std::size_t bytes = 0;
  CUpointer_attribute names[] = {CU_POINTER_ATTRIBUTE_RANGE_SIZE};
  void* values[] = {&bytes};
  if (ask == nullptr || address == nullptr ||
      ask(1, names, values, reinterpret_cast<CUdeviceptr>(address)) != CUDA_SUCCESS)
    return 0;
  return bytes;
}

// The register knows the origin streams of open captures. A stream that joined one by an event is
// found by asking, which captures survive (measured), and only while some capture is open.
bool stream_captures(unsigned copy, const call_facts& facts) noexcept {
  if (captures::begun_on(captures::key_of(facts.stream, facts.per_thread))) return true;
  if (facts.stream == 1 || (facts.stream == 0 && !facts.per_thread)) return false;  // legacy: never
  using query = CUresult (*)(CUstream, CUstreamCaptureStatus*);
  const auto ask =
      reinterpret_cast<query>(resolve::helper(resolve::helper_id::stream_is_capturing, copy));
  if (ask == nullptr) return false;
  const std::uint64_t named = facts.stream == 0 ? 2 : facts.stream;
  CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_NONE;
  return ask(reinterpret_cast<CUstream>(named), &status) == CUDA_SUCCESS &&
         status != CU_STREAM_CAPTURE_STATUS_NONE;
}

bool launch_blocking() noexcept {
  static std::atomic<int> known{-1};
  int value = known.load(std::memory_order_relaxed);
  if (value < 0) {
    const char* text = getenv("CUDA_LAUNCH_BLOCKING");
    value = text != nullptr && text[0] == '1';
    known.store(value, std::memory_order_relaxed);
  }
  return value == 1;
}

// The kind that decides for one end of a batch: pageable memory waits whatever the rest is.
hostwait_memory deciding(hostwait_memory a, hostwait_memory b) noexcept {
  const auto weight = [](hostwait_memory m) {
    switch (m) {
      case HOSTWAIT_MEMORY_PAGEABLE:
        return 4;
      case HOSTWAIT_MEMORY_UNKNOWN:
        return 3;
      case HOSTWAIT_MEMORY_MANAGED:
        return 2;
      case HOSTWAIT_MEMORY_PINNED:
        return 1;
      default:
        return 0;
    }
  };
  return weight(a) > weight(b) ? a : b;
}

// Both ends over all entries, as far as they are looked at.
void batch_memory(unsigned copy, const call_facts& facts, hostwait_memory& source,
                  hostwait_memory& destination, bool& sync_memops) noexcept {
  constexpr std::size_t stride_3d = sizeof(CUDA_MEMCPY3D_BATCH_OP);
  source = destination = HOSTWAIT_MEMORY_UNKNOWN;
  if (facts.source.address == nullptr) return;
  const std::size_t stride = (facts.aux2 & batch_is_3d) != 0 ? stride_3d : sizeof(CUdeviceptr);
  const auto ask = [&](const operand& first, std::uint64_t i) {
    const void* address;
    std::memcpy(&address, static_cast<const char*>(first.address) + i * stride, sizeof address);
    return memory_kind(copy, {address, declared::unified}, sync_memops);
  };
  for (std::uint64_t i = 0; i < facts.aux && i < batch_entries_looked_at; ++i) {
    const hostwait_memory from = ask(facts.source, i), to = ask(facts.destination, i);
    source = i == 0 ? from : deciding(source, from);
    destination = i == 0 ? to : deciding(destination, to);
  }
  if (facts.aux <= batch_entries_looked_at) return;
  source = deciding(source, HOSTWAIT_MEMORY_UNKNOWN);
  destination = deciding(destination, HOSTWAIT_MEMORY_UNKNOWN);
}

}  // namespace

void judge(call_context& call) noexcept {
  surroundings around;
  call.captures = {};
  if (captures::any_open()) {
    if (call.facts.has_stream) around.capture_on_stream = stream_captures(call.copy, call.facts);
    call.captures = captures::reach_of(
        call.row, call.facts, record::identity_of_thread(call.writer).tid,
        static_cast<capture_mode>(state::tls.capture_mode), around.capture_on_stream);
    around.capture_open = call.captures.any();
  }
  around.launch_blocking = launch_blocking();
  around.driver_version = state::driver_version();
  around.compute_capability = state::compute_capability();
  call.in_capture = around.capture_on_stream;
  const pointer_needs needs = needs_of(call.row, call.facts);
  hostwait_memory source = needs.source
                               ? memory_kind(call.copy, call.facts.source, around.sync_memops)
                               : HOSTWAIT_MEMORY_UNKNOWN;
  hostwait_memory destination =
      needs.destination ? memory_kind(call.copy, call.facts.destination, around.sync_memops)
                        : HOSTWAIT_MEMORY_UNKNOWN;
  if (rows[call.row].rule == rule_id::copy_batch && !around.capture_on_stream)
    batch_memory(call.copy, call.facts, source, destination, around.sync_memops);
  call.own_work_done = false;
  queues::before(call.row, call.facts, source, around.capture_on_stream, call.queued);
  if (call.queued.counted) {
    around.queued_since_idle = call.queued.queued;
    around.inline_copies_queued = call.queued.inline_copies;
    around.new_function = call.queued.new_function;
    call.own_work_done = call.queued.own_stream_idle && rows[call.row].rule == rule_id::stream &&
                         verdict_of_own_stream(call.facts) == HOSTWAIT_VERDICT_STREAM;
  }
  call.verdict = classify(call.row, call.facts, source, destination, around);
  if (const verdict_profile* measured = loaded_profile())
    profile_override(*measured, call.row, call.facts, source, destination, around, call.verdict);
  // How long unpinning takes by itself depends on a size that only the driver knows, and only
  // before the call.
  if (rows[call.row].kind == HOSTWAIT_KIND_HOST_FREE && call.facts.bytes == 0)
    call.facts.bytes = range_bytes(call.copy, call.facts.destination.address);
}

}  // namespace hostwait::entry
