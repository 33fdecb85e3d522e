// SPDX-License-Identifier: Apache-2.0
// Copyright The hostwait authors
// The table's rows, and rulings that the measured table does not reach.
#include <cstring>
#include <string>

#include "roles.hpp"
#include "support/catch.hpp"

#include "classify.hpp"

using namespace hostwait;

namespace {

constexpr hostwait_memory unknown = HOSTWAIT_MEMORY_UNKNOWN;

judgement judge(row_id row, call_facts facts, hostwait_memory source, hostwait_memory destination,
                const surroundings& now = {}) {
  facts.per_thread = row_is_per_thread(row);
  return classify(row, facts, source, destination, now);
}

CUstream stream(std::uint64_t handle) {
  return reinterpret_cast<CUstream>(handle);
}

int local;

}  // namespace

TEST_CASE("every row has a symbol of its own and a kind that fits its type") {
  for (unsigned i = 0; i < row_count; ++i) {
    const row_info& row = rows[i];
    INFO(row.symbol);
    CHECK(std::strncmp(row.symbol, "cu", 2) == 0);
    CHECK(row.rule < rule_id::count);
    CHECK((row.type == row_type::pressure) == (row.kind == HOSTWAIT_KIND_QUEUE_FULL));
    const bool audited = row.type == row_type::audit;
    CHECK((row.type == row_type::state || audited) == (row.kind == HOSTWAIT_KIND_UNLISTED));
    CHECK((row.type == row_type::state) == (row.rule == rule_id::state));
    CHECK(audited == (row.rule == rule_id::audit));
    const std::string name = row.symbol;
    const bool suffix = name.size() > 5 && (name.compare(name.size() - 5, 5, "_ptsz") == 0 ||
                                            name.compare(name.size() - 5, 5, "_ptds") == 0);
    CHECK(row_is_per_thread(static_cast<row_id>(i)) == suffix);
  }
}

TEST_CASE("all forms of a call share kind and rule") {
  const auto base = [](std::string name) {
    for (const char* suffix : {"_ptsz", "_ptds", "_v4", "_v3", "_v2"}) {
      const std::size_t n = std::strlen(suffix);
      if (name.size() > n && name.compare(name.size() - n, n, suffix) == 0)
        name.resize(name.size() - n);
    }
    return name;
  };
  for (const row_info& a : rows)
    for (const row_info& b : rows)
      if (base(a.symbol) == base(b.symbol)) {
        INFO(a.symbol << " " << b.symbol);
        CHECK((a.kind == b.kind && a.rule == b.rule && a.type == b.type));
      }
}

// docs/measurements/2026-11-30-h200-probe.json, rows copy/cuMemcpyBatchAsync_v2 and 3D.
TEST_CASE("batches wait as measured") {
  const auto batch = [](hostwait_memory from, hostwait_memory to, std::uint64_t flags) {
    call_facts facts = roles::stream_first::of(stream(3));
    facts.aux = 8;
    facts.aux2 = flags;
    return judge(row_cuMemcpyBatchAsync_v2, facts, from, to).verdict;
  };
  constexpr auto pageable = HOSTWAIT_MEMORY_PAGEABLE, pinned = HOSTWAIT_MEMORY_PINNED,
                 device = HOSTWAIT_MEMORY_DEVICE, managed = HOSTWAIT_MEMORY_MANAGED;
  constexpr std::uint64_t in_order = batch_in_stream_order, shaped = batch_is_3d | in_order;
  CHECK(batch(pageable, device, in_order) == HOSTWAIT_VERDICT_STREAM);
  CHECK(batch(pageable, device, 0) == HOSTWAIT_VERDICT_NONE);
  CHECK(batch(device, pageable, in_order) == HOSTWAIT_VERDICT_NONE);
  CHECK(batch(device, pinned, in_order) == HOSTWAIT_VERDICT_NONE);
  CHECK(batch(pinned, device, in_order) == HOSTWAIT_VERDICT_NONE);
  CHECK(batch(device, device, in_order) == HOSTWAIT_VERDICT_NONE);
  CHECK(batch(device, pageable, shaped) == HOSTWAIT_VERDICT_STREAM);
  CHECK(batch(device, pageable, 0) == HOSTWAIT_VERDICT_DEPENDS);
  CHECK(batch(managed, device, in_order) == HOSTWAIT_VERDICT_DEPENDS);
  CHECK(batch(unknown, unknown, in_order) == HOSTWAIT_VERDICT_DEPENDS);
  CHECK(batch(pageable, pinned, 0) == HOSTWAIT_VERDICT_DEPENDS);
}

TEST_CASE("the null stream is the legacy one, or the thread's own in the per-thread forms") {
  CHECK(
      judge(row_cuStreamSynchronize, roles::stream_first::of(nullptr), unknown, unknown).verdict ==
      HOSTWAIT_VERDICT_LEGACY);
  CHECK(judge(row_cuStreamSynchronize_ptsz, roles::stream_first::of(nullptr), unknown, unknown)
            .verdict == HOSTWAIT_VERDICT_STREAM);
  // CU_STREAM_LEGACY and CU_STREAM_PER_THREAD say so themselves, in both forms.
  CHECK(judge(row_cuStreamSynchronize_ptsz, roles::stream_first::of(CU_STREAM_LEGACY), unknown,
              unknown)
            .verdict == HOSTWAIT_VERDICT_LEGACY);
  CHECK(judge(row_cuStreamSynchronize, roles::stream_first::of(CU_STREAM_PER_THREAD), unknown,
              unknown)
            .verdict == HOSTWAIT_VERDICT_STREAM);
  CHECK(judge(row_cuMemcpyDtoH_v2_ptds, roles::dtoh::of(&local, 1, 4), unknown, unknown).verdict ==
        HOSTWAIT_VERDICT_STREAM);
  CHECK(judge(row_cuMemcpyDtoH_v2, roles::dtoh::of(&local, 1, 4), unknown, unknown).verdict ==
        HOSTWAIT_VERDICT_LEGACY);
}

TEST_CASE("memory kinds are asked for only where the verdict needs them") {
  const auto asks = [](row_id row, const call_facts& facts) {
    const pointer_needs n = needs_of(row, facts);
    return std::string(n.source ? "s" : "") + (n.destination ? "d" : "");
  };
  CHECK(asks(row_cuStreamSynchronize, roles::stream_first::of(stream(3))).empty());
  CHECK(asks(row_cuMemcpyDtoH_v2, roles::dtoh::of(&local, 1, 4)).empty());
  CHECK(asks(row_cuMemcpyDtoHAsync_v2, roles::dtoh::of(&local, 1, 4, stream(3))) == "sd");
  CHECK(asks(row_cuMemcpyDtoHAsync_v2, roles::dtoh::of(nullptr, 1, 4, stream(3))) == "s");
  CHECK(asks(row_cuMemcpy, roles::unified::of(1, 2, 4)) == "sd");
  CHECK(asks(row_cuMemsetD8_v2, roles::memset::of(1, '\0', 4)) == "d");
  CHECK(asks(row_cuMemFree_v2, roles::free_device::of(1)) == "d");
  CHECK(asks(row_cuMemFree_v2, roles::free_device::of(0)).empty());
  CHECK(asks(row_cuMemFreeHost, roles::free_host::of(&local)).empty());
  CUarray array = reinterpret_cast<CUarray>(0x20);
  CHECK(asks(row_cuMemcpyHtoAAsync_v2, roles::htoa::of(array, 0, &local, 4, stream(1))) == "s");
  CHECK(asks(row_cuMemcpyHtoA_v2, roles::htoa::of(array, 0, &local, 4)).empty());
  CHECK(asks(row_cuMemcpyAtoA_v2, roles::atoa::of(array, 0, array, 0, 4)).empty());
}

TEST_CASE("pageable uploads wait above 2 MiB and depend on staging room up to it") {
  const auto upload = [](std::uint64_t bytes) {
    return judge(row_cuMemcpyHtoDAsync_v2, roles::htod::of(1, &local, bytes, stream(3)),
                 HOSTWAIT_MEMORY_PAGEABLE, HOSTWAIT_MEMORY_DEVICE);
  };
  CHECK(upload(2097152).verdict == HOSTWAIT_VERDICT_DEPENDS);
  CHECK(upload(2097152).reason == HOSTWAIT_REASON_STAGING_LIMIT);
  CHECK(upload(2097153).verdict == HOSTWAIT_VERDICT_STREAM);
  CHECK(upload(4).direction == HOSTWAIT_DIRECTION_H2D);
}

TEST_CASE("unified copies get their direction from the memory kinds") {
  const auto copy = [](hostwait_memory from, hostwait_memory to) {
    return judge(row_cuMemcpyAsync, roles::unified::of(1, 2, 4, stream(3)), from, to);
  };
  CHECK(copy(HOSTWAIT_MEMORY_PINNED, HOSTWAIT_MEMORY_POOL).direction == HOSTWAIT_DIRECTION_H2D);
  CHECK(copy(HOSTWAIT_MEMORY_PINNED, HOSTWAIT_MEMORY_POOL).verdict == HOSTWAIT_VERDICT_NONE);
  CHECK(copy(HOSTWAIT_MEMORY_DEVICE, HOSTWAIT_MEMORY_DEVICE).direction == HOSTWAIT_DIRECTION_D2D);
  CHECK(copy(HOSTWAIT_MEMORY_DEVICE, HOSTWAIT_MEMORY_PAGEABLE).verdict == HOSTWAIT_VERDICT_STREAM);
  CHECK(copy(HOSTWAIT_MEMORY_PINNED, HOSTWAIT_MEMORY_PAGEABLE).direction == HOSTWAIT_DIRECTION_H2H);
  // Under the unified entry points managed memory behaves as device memory (probed on the H200).
  CHECK(copy(HOSTWAIT_MEMORY_MANAGED, HOSTWAIT_MEMORY_DEVICE).verdict == HOSTWAIT_VERDICT_NONE);
  CHECK(copy(HOSTWAIT_MEMORY_MANAGED, HOSTWAIT_MEMORY_PINNED).verdict == HOSTWAIT_VERDICT_NONE);
  CHECK(copy(HOSTWAIT_MEMORY_MANAGED, HOSTWAIT_MEMORY_PAGEABLE).verdict == HOSTWAIT_VERDICT_STREAM);
  const judgement blind = copy(unknown, HOSTWAIT_MEMORY_DEVICE);
  CHECK(blind.direction == HOSTWAIT_DIRECTION_NONE);
  CHECK(blind.reason == HOSTWAIT_REASON_UNMEASURED);
}

TEST_CASE("what nobody measured says so") {
  CUarray array = reinterpret_cast<CUarray>(0x20);
  for (const judgement& j :
       {judge(row_cuMemcpyHtoAAsync_v2, roles::htoa::of(array, 0, &local, 4 << 20, stream(3)),
              HOSTWAIT_MEMORY_PAGEABLE, unknown),
        judge(row_cuMemcpyDtoDAsync_v2, roles::dtod::of(1, 2, 4, stream(3)),
              HOSTWAIT_MEMORY_PAGEABLE, HOSTWAIT_MEMORY_DEVICE),
        judge(row_cuMemcpyPeer, roles::peer::of(1, reinterpret_cast<CUcontext>(8), 2, nullptr, 4),
              unknown, unknown),
        judge(row_cuMemcpyBatchAsync_v2, call_facts{}, unknown, unknown),
        judge(row_cuCtxSetLimit, roles::limit::of(CU_LIMIT_DEV_RUNTIME_SYNC_DEPTH, 1), unknown,
              unknown),
        judge(row_cuMemsetD8_v2, roles::memset::of(1, '\0', 4), unknown,
              HOSTWAIT_MEMORY_PAGEABLE)}) {
    CHECK(j.verdict == HOSTWAIT_VERDICT_DEPENDS);
    CHECK(j.reason == HOSTWAIT_REASON_UNMEASURED);
  }
}

TEST_CASE("work put into a capturing stream waits for nothing") {
  surroundings now;
  now.capture_on_stream = now.capture_open = true;
  const auto copy = roles::dtoh::of(&local, 1, 4, stream(3));
  CHECK(judge(row_cuMemcpyDtoHAsync_v2, copy, HOSTWAIT_MEMORY_DEVICE, HOSTWAIT_MEMORY_PAGEABLE, now)
            .verdict == HOSTWAIT_VERDICT_NONE);
  CHECK(judge(row_cuLaunchHostFunc, roles::stream_first::of(stream(3)), unknown, unknown, now)
            .verdict == HOSTWAIT_VERDICT_NONE);
  const auto wait =
      judge(row_cuStreamSynchronize, roles::stream_first::of(stream(3)), unknown, unknown, now);
  CHECK(wait.verdict == HOSTWAIT_VERDICT_DEPENDS);
  CHECK(wait.reason == HOSTWAIT_REASON_CAPTURE);
}

TEST_CASE("waits and queries that can break an open capture carry the reason") {
  surroundings now;
  now.capture_open = true;
  const auto device = judge(row_cuCtxSynchronize, {}, unknown, unknown, now);
  CHECK((device.verdict == HOSTWAIT_VERDICT_CONTEXT && device.reason == HOSTWAIT_REASON_CAPTURE));
  const auto query =
      judge(row_cuStreamQuery, roles::stream_first::of(stream(3)), unknown, unknown, now);
  CHECK((query.verdict == HOSTWAIT_VERDICT_NONE && query.reason == HOSTWAIT_REASON_CAPTURE));
  const auto copy = judge(row_cuMemcpyHtoDAsync_v2, roles::htod::of(1, &local, 4, stream(3)),
                          HOSTWAIT_MEMORY_PINNED, HOSTWAIT_MEMORY_DEVICE, now);
  CHECK((copy.verdict == HOSTWAIT_VERDICT_NONE && copy.reason == HOSTWAIT_REASON_NONE));
}

TEST_CASE("outside the measured domain only documented rulings stand") {
  surroundings older;
  older.driver_version = 12080;
  surroundings other_device;
  other_device.compute_capability = 80;
  for (const surroundings& now : {older, other_device}) {
    CHECK(judge(row_cuMemFree_v2, roles::free_device::of(1), unknown, HOSTWAIT_MEMORY_DEVICE, now)
              .verdict == HOSTWAIT_VERDICT_UNMEASURED);
    CHECK(judge(row_cuMemAlloc_v2, roles::alloc::of(nullptr, 1), unknown, unknown, now).reason ==
          HOSTWAIT_REASON_UNMEASURED);
    CHECK(judge(row_cuMemFree_v2, roles::free_device::of(0), unknown, unknown, now).verdict ==
          HOSTWAIT_VERDICT_NONE);
    CHECK(judge(row_cuCtxSynchronize, {}, unknown, unknown, now).verdict ==
          HOSTWAIT_VERDICT_CONTEXT);
    CHECK(judge(row_cuMemcpyDtoHAsync_v2, roles::dtoh::of(&local, 1, 4, stream(3)),
                HOSTWAIT_MEMORY_DEVICE, HOSTWAIT_MEMORY_PAGEABLE, now)
              .verdict == HOSTWAIT_VERDICT_STREAM);
  }
  older.driver_version = 13020;
  CHECK(judge(row_cuMemFree_v2, roles::free_device::of(1), unknown, HOSTWAIT_MEMORY_DEVICE, older)
            .verdict == HOSTWAIT_VERDICT_CONTEXT);
}

TEST_CASE("enqueue calls depend on the queue unless few are known to be in it") {
  surroundings now;
  const auto launch = roles::stream_first::of(stream(3));
  CHECK(judge(row_cuLaunchKernel, launch, unknown, unknown).reason == HOSTWAIT_REASON_QUEUE_DEPTH);
  now.queued_since_idle = 61;
  CHECK(judge(row_cuLaunchKernel, launch, unknown, unknown, now).verdict == HOSTWAIT_VERDICT_NONE);
  now.queued_since_idle = 62;
  CHECK(judge(row_cuLaunchKernel, launch, unknown, unknown, now).verdict ==
        HOSTWAIT_VERDICT_DEPENDS);
  now.inline_copies_queued = false;
  CHECK(judge(row_cuLaunchKernel, launch, unknown, unknown, now).verdict == HOSTWAIT_VERDICT_NONE);
  now.queued_since_idle = 1020;
  CHECK(judge(row_cuLaunchKernel, launch, unknown, unknown, now).verdict == HOSTWAIT_VERDICT_NONE);
  now.queued_since_idle = 1021;
  CHECK(judge(row_cuLaunchKernel, launch, unknown, unknown, now).verdict ==
        HOSTWAIT_VERDICT_DEPENDS);
  now.launch_blocking = true;
  CHECK(judge(row_cuLaunchKernel, launch, unknown, unknown, now).verdict ==
        HOSTWAIT_VERDICT_STREAM);
  CHECK(judge(row_cuEventRecord, launch, unknown, unknown, now).verdict ==
        HOSTWAIT_VERDICT_DEPENDS);
}

TEST_CASE("what the probe measured on the H200") {
  const auto verdict = [](row_id row, const call_facts& facts, hostwait_memory source = unknown,
                          hostwait_memory destination = unknown) {
    return judge(row, facts, source, destination).verdict;
  };
  // No bytes, no wait.
  CHECK(verdict(row_cuMemcpyDtoH_v2, roles::dtoh::of(&local, 1, 0)) == HOSTWAIT_VERDICT_NONE);
  CHECK(verdict(row_cuMemcpyDtoHAsync_v2, roles::dtoh::of(&local, 1, 0, stream(3)),
                HOSTWAIT_MEMORY_DEVICE, HOSTWAIT_MEMORY_PAGEABLE) == HOSTWAIT_VERDICT_NONE);
  // Device pointers by signature that are none: only the call without Async waits.
  for (const hostwait_memory memory : {HOSTWAIT_MEMORY_MANAGED, HOSTWAIT_MEMORY_PINNED}) {
    CHECK(verdict(row_cuMemcpyDtoD_v2, roles::dtod::of(1, 2, 4), memory, HOSTWAIT_MEMORY_DEVICE) ==
          HOSTWAIT_VERDICT_LEGACY);
    CHECK(verdict(row_cuMemcpyDtoDAsync_v2, roles::dtod::of(1, 2, 4, stream(3)), memory,
                  HOSTWAIT_MEMORY_DEVICE) == HOSTWAIT_VERDICT_NONE);
  }
  CHECK(verdict(row_cuCtxSetLimit, roles::limit::of(CU_LIMIT_MALLOC_HEAP_SIZE, 1)) ==
        HOSTWAIT_VERDICT_NONE);
  CHECK(verdict(row_cuMemUnmap, roles::range::of(1, 2)) == HOSTWAIT_VERDICT_NONE);
  for (const row_id row : {row_cuGreenCtxCreate, row_cuIpcCloseMemHandle, row_cuCtxDestroy_v2,
                           row_cuLibraryUnload, row_cuMipmappedArrayDestroy})
    CHECK(verdict(row, call_facts{}) == HOSTWAIT_VERDICT_CONTEXT);
  surroundings shallow;
  shallow.queued_since_idle = 2;
  // The third large upload waits; before it the verdict is known only where the queue is.
  const auto upload = roles::htod::of(1, &local, 1 << 20, stream(3));
  const auto upload_verdict = [&](const surroundings& now) {
    return judge(row_cuMemcpyHtoDAsync_v2, upload, HOSTWAIT_MEMORY_PAGEABLE, HOSTWAIT_MEMORY_DEVICE,
                 now)
        .verdict;
  };
  CHECK(upload_verdict(shallow) == HOSTWAIT_VERDICT_DEPENDS);
  CHECK(upload_verdict({}) == HOSTWAIT_VERDICT_DEPENDS);
  shallow.queued_since_idle = 1;
  CHECK(upload_verdict(shallow) == HOSTWAIT_VERDICT_NONE);
  const judgement graph = judge(row_cuGraphLaunch, roles::stream_last::of(nullptr, stream(3)),
                                unknown, unknown, shallow);
  CHECK(graph.verdict == HOSTWAIT_VERDICT_DEPENDS);
  CHECK(graph.reason == HOSTWAIT_REASON_GRAPH_NODES);
}

TEST_CASE("arrays count as device memory") {
  CUarray array = reinterpret_cast<CUarray>(0x20);
  const auto verdict = [](row_id row, const call_facts& facts, hostwait_memory source = unknown,
                          hostwait_memory destination = unknown) {
    return judge(row, facts, source, destination).verdict;
  };
  CHECK(verdict(row_cuMemcpyHtoA_v2, roles::htoa::of(array, 0, &local, 4)) ==
        HOSTWAIT_VERDICT_LEGACY);
  CHECK(verdict(row_cuMemcpyHtoA_v2_ptds, roles::htoa::of(array, 0, &local, 4)) ==
        HOSTWAIT_VERDICT_DEPENDS);
  CHECK(verdict(row_cuMemcpyHtoA_v2_ptds, roles::htoa::of(array, 0, &local, 4 << 20)) ==
        HOSTWAIT_VERDICT_STREAM);
  CHECK(verdict(row_cuMemcpyAtoA_v2, roles::atoa::of(array, 0, array, 0, 4)) ==
        HOSTWAIT_VERDICT_NONE);
  CHECK(verdict(row_cuMemcpyAtoHAsync_v2, roles::atoh::of(&local, array, 0, 4, stream(3)), unknown,
                HOSTWAIT_MEMORY_PAGEABLE) == HOSTWAIT_VERDICT_STREAM);
  CHECK(verdict(row_cuMemcpyAtoHAsync_v2, roles::atoh::of(&local, array, 0, 4, stream(3)), unknown,
                HOSTWAIT_MEMORY_PINNED) == HOSTWAIT_VERDICT_NONE);
}

TEST_CASE("calls without Async in their names wait on memory with SYNC_MEMOPS") {
  surroundings marked;
  marked.sync_memops = true;
  const auto device = HOSTWAIT_MEMORY_DEVICE;
  const auto copy = roles::dtod::of(1, 2, 4);
  CHECK(judge(row_cuMemcpyDtoD_v2, copy, device, device, marked).verdict ==
        HOSTWAIT_VERDICT_LEGACY);
  CHECK(judge(row_cuMemcpyDtoD_v2, copy, device, device).verdict == HOSTWAIT_VERDICT_NONE);
  CHECK(judge(row_cuMemcpy, roles::unified::of(1, 2, 4), device, device, marked).verdict ==
        HOSTWAIT_VERDICT_LEGACY);
  CHECK(judge(row_cuMemsetD8_v2_ptds, roles::memset::of(1, '\0', 4), unknown, device, marked)
            .verdict == HOSTWAIT_VERDICT_STREAM);
  CHECK(judge(row_cuMemcpyDtoDAsync_v2, roles::dtod::of(1, 2, 4, stream(3)), device, device, marked)
            .verdict == HOSTWAIT_VERDICT_NONE);
}

TEST_CASE("a reset waits for every stream") {
  for (row_id row : {row_cuDevicePrimaryCtxReset, row_cuDevicePrimaryCtxReset_v2}) {
    CHECK(judge(row, {}, unknown, unknown).verdict == HOSTWAIT_VERDICT_CONTEXT);
    surroundings older;
    older.driver_version = 12080;
    CHECK(judge(row, {}, unknown, unknown, older).verdict == HOSTWAIT_VERDICT_UNMEASURED);
  }
}

TEST_CASE("small pageable uploads do not wait while the queue is known to be shallow") {
  surroundings now;
  now.queued_since_idle = 61;
  const auto upload = [&](std::uint64_t bytes) {
    return judge(row_cuMemcpyHtoDAsync_v2, roles::htod::of(1, &local, bytes, stream(3)),
                 HOSTWAIT_MEMORY_PAGEABLE, HOSTWAIT_MEMORY_DEVICE, now)
        .verdict;
  };
  CHECK(upload(65536) == HOSTWAIT_VERDICT_NONE);
  CHECK(upload(65537) == HOSTWAIT_VERDICT_DEPENDS);
  now.queued_since_idle = 62;
  CHECK(upload(4) == HOSTWAIT_VERDICT_DEPENDS);
}

TEST_CASE("the first launch of a kernel depends on what it must load") {
  surroundings now;
  now.queued_since_idle = 1;
  now.new_function = true;
  const auto launch = roles::stream_first::of(stream(3));
  const auto first = judge(row_cuLaunchKernel, launch, unknown, unknown, now);
  CHECK((first.verdict == HOSTWAIT_VERDICT_DEPENDS && first.reason == HOSTWAIT_REASON_LAZY_LOAD));
  CHECK(judge(row_cuEventRecord, launch, unknown, unknown, now).verdict == HOSTWAIT_VERDICT_NONE);
  now.capture_on_stream = true;
  CHECK(judge(row_cuLaunchKernel, launch, unknown, unknown, now).verdict == HOSTWAIT_VERDICT_NONE);
}

TEST_CASE("own cost: 120 us, 1 GB/s more for copies and memsets, floors for frees") {
  call_facts facts;
  facts.bytes = 4u << 20;
  CHECK(own_cost_ns(row_cuMemcpyDtoH_v2, facts) == 120000 + (4u << 20));
  CHECK(own_cost_ns(row_cuMemcpyDtoH_v2, facts, 120, 1, true) == 360000 + (4u << 20));
  CHECK(own_cost_ns(row_cuMemsetD8_v2, facts, 5, 2) == 5000 + (2u << 20));
  CHECK(own_cost_ns(row_cuMemcpyDtoH_v2, facts, 5, 0) == 5000);
  CHECK(own_cost_ns(row_cuStreamSynchronize, facts) == 120000);
  CHECK(own_cost_ns(row_cuEventSynchronize, facts) == 240000);
  CHECK(own_cost_ns(row_cuMemFree_v2, facts) == 1000000);
  CHECK(own_cost_ns(row_cuMemFreeHost, facts, 20) == 20000 + 1000000 + (4u << 20) / 5);
  facts.bytes = 0;
  CHECK(own_cost_ns(row_cuMemcpyBatchAsync_v2, facts) == 360000);  // the size is not known
  CHECK(own_cost_ns(row_cuMemFreeHost, facts, 20) > 10000000);
  CHECK(own_cost_known(row_cuMemcpyDtoH_v2));
  CHECK_FALSE(own_cost_known(row_cuMemAlloc_v2));
  CHECK_FALSE(own_cost_known(row_cuModuleLoadData));
  CHECK_FALSE(own_cost_known(row_cuCtxSetLimit));
}
