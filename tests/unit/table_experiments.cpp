// SPDX-License-Identifier: Apache-2.0
// Copyright The hostwait authors
// Labels of the measured table to driver calls. The labels are those of the trial program that
// made the table; the driver calls behind the runtime's were logged on the same machine.
#include "table_experiments.hpp"

#include <fstream>
#include <map>
#include <sstream>
#include <stdexcept>

namespace hostwait::experiments {

namespace {

// Streams of the trial program. The legacy one was passed as the null stream.
constexpr std::uint64_t legacy = 0, per_thread = 2, blocking = 0x100, nonblocking = 0x200,
                        idle_nonblocking = 0x300;

std::uint64_t handle_of(const std::string& name) {
  if (name == "legacy") return legacy;
  if (name == "blocking") return blocking;
  if (name == "nonblocking") return nonblocking;
  if (name == "per_thread") return per_thread;
  throw std::runtime_error("unknown stream " + name);
}

struct memory_block {
  std::uint64_t first, second;
  hostwait_memory kind;
};
const std::map<std::string, memory_block> memory = {
    {"device", {0x7f0000000000, 0x7f0001000000, HOSTWAIT_MEMORY_DEVICE}},
    {"pageable", {0x550000000000, 0x550001000000, HOSTWAIT_MEMORY_PAGEABLE}},
    {"pinned", {0x7e0000000000, 0x7e0001000000, HOSTWAIT_MEMORY_PINNED}},
    {"registered", {0x560000000000, 0x560001000000, HOSTWAIT_MEMORY_PINNED}},
    {"managed", {0x7d0000000000, 0x7d0001000000, HOSTWAIT_MEMORY_MANAGED}},
    {"pool", {0x7c0000000000, 0x7c0001000000, HOSTWAIT_MEMORY_POOL}},
};

void* pointer(std::uint64_t address) {
  return reinterpret_cast<void*>(address);
}
CUstream stream(std::uint64_t handle) {
  return reinterpret_cast<CUstream>(handle);
}
std::uint64_t at(const std::string& kind) {
  return memory.at(kind).first;
}

std::uint64_t size_of(const std::string& text) {
  return std::stoull(text) * (text.back() == 'K' ? 1024 : text.back() == 'M' ? 1024 * 1024 : 1);
}

template <class Roles, class... Arguments>
step call(row_id row, Roles, Arguments... arguments) {
  step s{row, Roles::of(arguments...), 0};
  s.facts.per_thread = row_is_per_thread(row);
  return s;
}

CUDA_MEMCPY2D rows_2d(CUmemorytype from, std::uint64_t source, CUmemorytype to,
                      std::uint64_t destination, std::size_t width, std::size_t height) {
  CUDA_MEMCPY2D d{};
  d.srcMemoryType = from;
  if (from == CU_MEMORYTYPE_HOST)
    d.srcHost = pointer(source);
  else
    d.srcDevice = source;
  d.dstMemoryType = to;
  if (to == CU_MEMORYTYPE_HOST)
    d.dstHost = pointer(destination);
  else
    d.dstDevice = destination;
  d.WidthInBytes = width;
  d.Height = height;
  return d;
}

// "cudaMemcpyAsync H2D pageable 64K same": call, direction, memory of the host ends, size, stream.
bool flat_copy(const std::string& label, std::uint64_t k, std::vector<step>& out) {
  std::istringstream words(label);
  std::string name, direction, kind, size, where;
  words >> name >> direction >> kind >> size >> where;
  if (size.empty() || !memory.count(kind)) return false;
  const bool async = name == "cudaMemcpyAsync";
  if (!async && name != "cudaMemcpy" && name != "cuMemcpyHtoD") return false;
  const std::uint64_t bytes = size_of(size), host = memory.at(kind).first;
  const CUstream s = stream(where == "same" ? k : idle_nonblocking);
  const std::uint64_t device = at("device");
  if (name == "cuMemcpyHtoD" || direction == "H2D")
    out.push_back(
        async ? call(row_cuMemcpyHtoDAsync_v2, roles::htod{}, device, pointer(host), bytes, s)
              : call(row_cuMemcpyHtoD_v2, roles::htod{}, device, pointer(host), bytes));
  else if (direction == "D2H")
    out.push_back(
        async ? call(row_cuMemcpyDtoHAsync_v2, roles::dtoh{}, pointer(host), device, bytes, s)
              : call(row_cuMemcpyDtoH_v2, roles::dtoh{}, pointer(host), device, bytes));
  else {  // H2H: the runtime hands one row to the 2D calls
    const std::uint64_t to = kind == "registered" ? at("pinned") : memory.at(kind).second;
    const CUDA_MEMCPY2D d = rows_2d(CU_MEMORYTYPE_HOST, host, CU_MEMORYTYPE_HOST, to, bytes, 1);
    out.push_back(async ? call(row_cuMemcpy2DAsync_v2, roles::descriptor{}, &d, s)
                        : call(row_cuMemcpy2DUnaligned_v2, roles::descriptor{}, &d));
  }
  return true;
}

using builder = std::function<void(std::uint64_t k, std::vector<step>&)>;

template <class Roles, class... Arguments>
builder one(row_id row, Roles roles_of, Arguments... arguments) {
  const step s = call(row, roles_of, arguments...);
  return [s](std::uint64_t, std::vector<step>& out) { out.push_back(s); };
}

// Calls on the busy stream itself.
builder on_busy(row_id row, std::function<step(row_id, CUstream)> make) {
  return [=](std::uint64_t k, std::vector<step>& out) { out.push_back(make(row, stream(k))); };
}

step last_stream(row_id row, CUstream s) {
  return call(row, roles::stream_last{}, 0, s);
}
step first_stream(row_id row, CUstream s) {
  return call(row, roles::stream_first{}, s);
}

const builder nothing = [](std::uint64_t, std::vector<step>&) {};

const std::map<std::string, builder>& table() {
  const CUstream nb2 = stream(idle_nonblocking);
  const CUevent event = reinterpret_cast<CUevent>(0x900);
  const CUfunction kernel = reinterpret_cast<CUfunction>(0xa00);
  const CUarray array = reinterpret_cast<CUarray>(0xb00);
  const CUcontext context = reinterpret_cast<CUcontext>(0xc00);
  const std::size_t full = 8u << 20, half = 4u << 20, mib = 1u << 20, gib = 1u << 30;
  const std::uint64_t d1 = at("device"), d2 = memory.at("device").second;
  const auto value = static_cast<unsigned char>(0);
  const auto memset_to = [=](const char* kind) {
    return one(row_cuMemsetD8_v2, roles::memset{}, at(kind), value, full);
  };
  const auto memset_async_to = [=](const char* kind) -> builder {
    return on_busy(row_cuMemsetD8Async, [=](row_id row, CUstream s) {
      return call(row, roles::memset{}, at(kind), value, full, s);
    });
  };
  const auto launch_on = [=](CUstream s) {
    return one(row_cuLaunchKernel, roles::launch{}, kernel, 1u, 1u, 1u, 1u, 1u, 1u, 0u, s, nullptr,
               nullptr);
  };
  const auto record_then = [=](auto next) -> builder {
    return [=](std::uint64_t k, std::vector<step>& out) {
      out.push_back(call(row_cuEventRecord, roles::event_record{}, event, stream(k)));
      next(k, out);
    };
  };
  void* const no_pointer = nullptr;
  static const std::map<std::string, builder> labels = {
      {"cudaDeviceSynchronize", one(row_cuCtxSynchronize_v2, roles::context_only{}, context)},
      {"cuCtxSynchronize", one(row_cuCtxSynchronize, roles::context_only{})},
      {"cudaStreamSynchronize(k)", on_busy(row_cuStreamSynchronize, first_stream)},
      {"cudaStreamSynchronize(nb2)", one(row_cuStreamSynchronize, roles::stream_first{}, nb2)},
      {"cudaStreamSynchronize(0)",
       one(row_cuStreamSynchronize, roles::stream_first{}, stream(legacy))},
      {"cudaEventRecord+cudaEventSynchronize(k)",
       record_then([=](std::uint64_t k, std::vector<step>& out) {
         step wait = call(row_cuEventSynchronize, roles::event_only{}, event);
         wait.event_stream = k;
         out.push_back(wait);
       })},
      {"cudaStreamQuery(k)", on_busy(row_cuStreamQuery, first_stream)},
      {"cudaStreamWaitEvent(nb2)",
       record_then([=](std::uint64_t, std::vector<step>& out) {
         out.push_back(call(row_cuStreamWaitEvent, roles::stream_wait_event{}, nb2, event, 0u));
       })},
      {"cudaMemcpy D2D 4M", one(row_cuMemcpyDtoD_v2, roles::dtod{}, d1, d2, half)},
      {"cudaMemcpyAsync D2D 4M same",
       on_busy(row_cuMemcpyDtoDAsync_v2,
               [=](row_id row, CUstream s) { return call(row, roles::dtod{}, d1, d2, half, s); })},
      {"cuMemcpyDtoDAsync",
       on_busy(row_cuMemcpyDtoDAsync_v2,
               [=](row_id row, CUstream s) { return call(row, roles::dtod{}, d1, d2, half, s); })},
      {"cuMemcpyHtoD pageable 4M",
       one(row_cuMemcpyHtoD_v2, roles::htod{}, d1, pointer(at("pageable")), half)},
      {"cudaMemcpy Default managed->device",
       one(row_cuMemcpy, roles::unified{}, d1, at("managed"), half)},
      {"cudaMemcpy2D D2H pageable",
       [=](std::uint64_t, std::vector<step>& out) {
         const auto d = rows_2d(CU_MEMORYTYPE_DEVICE, d1, CU_MEMORYTYPE_HOST, at("pageable"), 512,
                                64);
         out.push_back(call(row_cuMemcpy2DUnaligned_v2, roles::descriptor{}, &d));
       }},
      {"cudaMemcpy2DAsync D2H pinned same",
       [=](std::uint64_t k, std::vector<step>& out) {
         const auto d = rows_2d(CU_MEMORYTYPE_DEVICE, d1, CU_MEMORYTYPE_HOST, at("pinned"), 512, 64);
         out.push_back(call(row_cuMemcpy2DAsync_v2, roles::descriptor{}, &d, stream(k)));
       }},
      {"cudaMemcpy2DAsync H2D pageable same",
       [=](std::uint64_t k, std::vector<step>& out) {
         const auto d = rows_2d(CU_MEMORYTYPE_HOST, at("pageable"), CU_MEMORYTYPE_DEVICE, d1, 512,
                                64);
         out.push_back(call(row_cuMemcpy2DAsync_v2, roles::descriptor{}, &d, stream(k)));
       }},
      // The symbol's address was looked up by a first copy before the measurement.
      {"cudaMemcpyToSymbol pageable 4",
       one(row_cuMemcpyHtoD_v2, roles::htod{}, d1, pointer(at("pageable")), 4u)},
      {"cudaMemcpyToSymbolAsync pageable 4 same",
       on_busy(row_cuMemcpyHtoDAsync_v2,
               [=](row_id row, CUstream s) {
                 return call(row, roles::htod{}, d1, pointer(at("pageable")), 4u, s);
               })},
      {"cudaMemcpyFromSymbol pageable 4",
       one(row_cuMemcpyDtoH_v2, roles::dtoh{}, pointer(at("pageable")), d1, 4u)},
      {"cudaMemcpyPeer 0->0",
       one(row_cuMemcpyPeer, roles::peer{}, d1, context, d2, context, half)},
      {"cudaMemset device", memset_to("device")},
      {"cudaMemset pinned", memset_to("pinned")},
      {"cudaMemset managed", memset_to("managed")},
      {"cudaMemsetAsync device same", memset_async_to("device")},
      {"cudaMemsetAsync pinned same", memset_async_to("pinned")},
      {"cudaMemsetAsync managed same", memset_async_to("managed")},
      {"cudaMalloc 1M", one(row_cuMemAlloc_v2, roles::alloc{}, no_pointer, mib)},
      {"cudaMalloc 1G", one(row_cuMemAlloc_v2, roles::alloc{}, no_pointer, gib)},
      {"cudaFree 1M", one(row_cuMemFree_v2, roles::free_device{}, d1)},
      {"cudaFree 1G", one(row_cuMemFree_v2, roles::free_device{}, d1)},
      {"cuMemFree", one(row_cuMemFree_v2, roles::free_device{}, d1)},
      {"cudaFree managed", one(row_cuMemFree_v2, roles::free_device{}, at("managed"))},
      {"cudaFree(nullptr)", one(row_cuMemFree_v2, roles::free_device{}, 0u)},
      {"cudaFree of async ptr", one(row_cuMemFree_v2, roles::free_device{}, at("pool"))},
      {"cudaMallocHost 1M", one(row_cuMemHostAlloc, roles::alloc{}, no_pointer, mib, 0u)},
      {"cudaFreeHost 1M",
       one(row_cuMemFreeHost, roles::free_host{}, pointer(at("pinned")))},
      {"cudaFreeHost 64M",
       one(row_cuMemFreeHost, roles::free_host{}, pointer(at("pinned")))},
      {"cudaHostRegister 1M",
       one(row_cuMemHostRegister_v2, roles::host_register{}, pointer(at("registered")), mib, 0u)},
      {"cudaHostUnregister 1M",
       one(row_cuMemHostUnregister, roles::free_host{}, pointer(at("registered")))},
      {"cudaMallocManaged 1M", one(row_cuMemAllocManaged, roles::alloc{}, no_pointer, mib, 1u)},
      {"cudaMallocAsync",
       on_busy(row_cuMemAllocAsync,
               [=](row_id row, CUstream s) {
                 return call(row, roles::alloc_async{}, no_pointer, mib, s);
               })},
      {"cudaFreeAsync same", on_busy(row_cuMemFreeAsync, last_stream)},
      {"cudaMemPoolTrimTo 0", one(row_cuMemPoolTrimTo, roles::none{}, no_pointer, 0)},
      {"cudaStreamCreate", nothing},
      {"cudaStreamDestroy idle", nothing},
      {"cudaStreamDestroy busy", nothing},
      {"cudaEventCreate", one(row_cuEventCreate, roles::none{}, no_pointer, 0u)},
      {"cudaEventDestroy pending", record_then(nothing)},
      {"cudaEventElapsedTime",
       one(row_cuEventElapsedTime_v2, roles::event_pair{}, nullptr, event, event)},
      {"launch kernel legacy", launch_on(stream(legacy))},
      {"launch kernel nb2", launch_on(nb2)},
      {"cudaLaunchHostFunc", on_busy(row_cuLaunchHostFunc, first_stream)},
      {"cudaGraphInstantiate",
       one(row_cuGraphInstantiateWithFlags, roles::none{}, no_pointer, no_pointer, 0)},
      {"cudaGraphExecDestroy", nothing},
      {"cudaGraphLaunch nb2", one(row_cuGraphLaunch, roles::stream_last{}, no_pointer, nb2)},
      {"cudaMemPrefetchAsync man->dev nb2",
       one(row_cuMemPrefetchAsync_v2, roles::stream_last{}, at("managed"), nb2)},
      {"cudaMemPrefetchAsync man->host nb2",
       one(row_cuMemPrefetchAsync_v2, roles::stream_last{}, at("managed"), nb2)},
      {"cudaMemAdvise", nothing},
      {"cudaPointerGetAttributes", nothing},
      {"cudaDeviceSetLimit printf",
       one(row_cuCtxSetLimit, roles::limit{}, CU_LIMIT_PRINTF_FIFO_SIZE, mib)},
      {"cudaDeviceSetLimit stack",
       one(row_cuCtxSetLimit, roles::limit{}, CU_LIMIT_STACK_SIZE, mib)},
      {"cudaDeviceSetCacheConfig", nothing},
      {"cudaMemGetInfo", nothing},
      {"cudaGetDeviceProperties", nothing},  // cached by the runtime: no driver call
      {"cudaSetDevice", nothing},
      {"cudaMalloc3DArray", one(row_cuArray3DCreate_v2, roles::none{}, no_pointer, no_pointer)},
      {"cudaFreeArray", one(row_cuArrayDestroy, roles::free_array{}, array)},
      {"cudaFuncSetAttribute",
       [=](std::uint64_t, std::vector<step>& out) {
         out.push_back(call(row_cuKernelGetFunction, roles::none{}));
         out.push_back(call(row_cuKernelSetAttribute, roles::none{}));
       }},
      {"cudaOccupancy",
       one(row_cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags, roles::none{})},
      {"host touch managed (idle pages)", nothing},  // no call at all
      {"cuModuleLoadData ptx", one(row_cuModuleLoadData, roles::none{}, no_pointer, no_pointer)},
      {"cuModuleUnload", one(row_cuModuleUnload, roles::none{}, no_pointer)},
  };
  return labels;
}

probe::stream_kind kind_of(std::uint64_t handle) {
  switch (handle) {
    case legacy:
      return probe::stream_kind::legacy;
    case per_thread:
      return probe::stream_kind::per_thread;
    case blocking:
      return probe::stream_kind::blocking;
    case nonblocking:
      return probe::stream_kind::nonblocking;
    default:
      return probe::stream_kind::other_nonblocking;
  }
}

// Calls without a stream run on the null stream, which was the legacy one.
probe::stream_kind own_of(const step& s) {
  if (rows[s.row].kind == HOSTWAIT_KIND_EVENT_SYNC) return kind_of(s.event_stream);
  return kind_of(s.facts.has_stream ? s.facts.stream : legacy);
}

// The trial queued one kernel and at most one event on an idle device before each call.
surroundings as_measured() {
  surroundings now;
  now.driver_version = 13000;
  now.compute_capability = 90;
  now.queued_since_idle = 2;
  return now;
}

}  // namespace

std::vector<experiment> read(const std::string& csv_path) {
  std::ifstream file(csv_path);
  if (!file) throw std::runtime_error("cannot read " + csv_path);
  std::vector<experiment> all;
  std::string line;
  std::getline(file, line);
  while (std::getline(file, line)) {
    std::istringstream fields(line);
    experiment e;
    std::string time, blocked;
    std::getline(fields, e.call, ',');
    std::getline(fields, e.busy, ',');
    std::getline(fields, time, ',');
    std::getline(fields, blocked, ',');
    e.milliseconds = std::stod(time);
    e.blocked = blocked.rfind("yes", 0) == 0;
    all.push_back(e);
  }
  return all;
}

bool steps_of(const experiment& e, std::vector<step>& out) {
  const std::uint64_t k = handle_of(e.busy);
  const auto known = table().find(e.call);
  if (known == table().end()) return flat_copy(e.call, k, out);
  known->second(k, out);
  return true;
}

hostwait_memory memory_at(const void* address) {
  const auto a = reinterpret_cast<std::uintptr_t>(address);
  for (const auto& [name, block] : memory)
    if (a == block.first || a == block.second) return block.kind;
  return HOSTWAIT_MEMORY_UNKNOWN;
}

prediction predict(const experiment& e, const std::vector<step>& steps, const judge& judge_call) {
  prediction all = prediction::free;
  for (const step& s : steps) {
    const pointer_needs needs = needs_of(s.row, s.facts);
    const auto ask = [](bool needed, const operand& end) {
      return needed ? memory_at(end.address) : HOSTWAIT_MEMORY_UNKNOWN;
    };
    const judgement j = judge_call(s.row, s.facts, ask(needs.source, s.facts.source),
                                   ask(needs.destination, s.facts.destination), as_measured());
    const prediction p = probe::predict(j, own_of(s), kind_of(handle_of(e.busy)));
    if (p == prediction::blocked) return p;
    if (p == prediction::depends) all = p;
  }
  return all;
}

tally run(const std::vector<experiment>& all, const judge& judge_call) {
  tally t;
  for (const experiment& e : all) {
    ++t.experiments;
    std::vector<step> steps;
    if (!steps_of(e, steps)) {
      ++t.wrong;
      t.complaints.push_back(e.call + ": unknown label");
      continue;
    }
    for (const step& s : steps) {
      t.rows.insert(s.row);
      t.rules.insert(rows[s.row].rule);
    }
    const prediction p = predict(e, steps, judge_call);
    if (p == prediction::depends) {
      ++t.depend;
    } else if ((p == prediction::blocked) == e.blocked) {
      ++t.agree;
    } else {
      ++t.wrong;
      t.complaints.push_back(e.call + " on " + e.busy + ": the host was " +
                             (e.blocked ? "stopped" : "not stopped"));
    }
  }
  return t;
}

}  // namespace hostwait::experiments
