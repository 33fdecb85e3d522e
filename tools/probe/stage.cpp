// SPDX-License-Identifier: Apache-2.0
// Copyright The hostwait authors
#include "stage.hpp"

#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include <cstring>

#include "kernels.hpp"

namespace hostwait::probe {

std::uint64_t now_ns() {
  timespec t{};
  ::clock_gettime(CLOCK_MONOTONIC, &t);
  return static_cast<std::uint64_t>(t.tv_sec) * 1'000'000'000u +
         static_cast<std::uint64_t>(t.tv_nsec);
}

stage::stage(driver& given, int number) : d(given) {
  need(d.cuInit(0), "cuInit");
  need(d.cuDeviceGetCount(&devices), "cuDeviceGetCount");
  need(d.cuDeviceGet(&device, number), "cuDeviceGet");
  d.cuDriverGetVersion(&driver_version);
  char name[128] = {};
  d.cuDeviceGetName(name, sizeof name - 1, device);
  device_name = name;
  int major = 0, minor = 0;
  d.cuDeviceGetAttribute(&major, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, device);
  d.cuDeviceGetAttribute(&minor, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR, device);
  compute_capability = 10 * major + minor;
  need(d.cuDevicePrimaryCtxRetain(&context, device), "cuDevicePrimaryCtxRetain");
  need(d.cuCtxSetCurrent(context), "cuCtxSetCurrent");
  need(d.cuStreamCreate(&blocking, CU_STREAM_DEFAULT), "cuStreamCreate");
  need(d.cuStreamCreate(&other_blocking, CU_STREAM_DEFAULT), "cuStreamCreate");
  need(d.cuStreamCreate(&nonblocking, CU_STREAM_NON_BLOCKING), "cuStreamCreate");
  need(d.cuStreamCreate(&other_nonblocking, CU_STREAM_NON_BLOCKING), "cuStreamCreate");
  base_module = load(spin_ptx);
  spin = function(base_module, "spin");
  tiny = function(base_module, "tiny");
  // The simulated kernel writes no flags.
  if (!d.simulated()) {
    // Registered, not allocated by the driver: some experiments end the context and still read it.
    void* flags = nullptr;
    const auto pin = d.get<row_cuMemHostRegister_v2>();
    if (::posix_memalign(&flags, 4096, 4096) != 0) throw unsupported{"no host memory"};
    std::memset(flags, 0, 4096);
    if (pin != nullptr && d.cuMemHostGetDevicePointer_v2 != nullptr &&
        pin(flags, 4096, CU_MEMHOSTREGISTER_DEVICEMAP) == CUDA_SUCCESS &&
        d.cuMemHostGetDevicePointer_v2(&flags_on_device_, flags, 0) == CUDA_SUCCESS)
      flags_ = static_cast<volatile unsigned*>(flags);
  }
  // Every stream has run both kernels before anything is measured.
  for (CUstream on :
       {legacy, blocking, other_blocking, nonblocking, other_nonblocking, per_thread}) {
    keep_busy(on, 1000);
    launch(tiny, on);
  }
  if (!drain()) throw unsupported{"the first kernels failed"};
}

void stage::need(CUresult r, const char* what) {
  if (r != CUDA_SUCCESS) throw unsupported{std::string(what) + ": " + d.name_of(r)};
}

CUmodule stage::load(const char* ptx) {
  CUmodule made = nullptr;
  const auto call = d.get<row_cuModuleLoadData>();
  if (call == nullptr) throw unsupported{"cuModuleLoadData is not exported"};
  need(call(&made, ptx), "cuModuleLoadData");
  return made;
}

CUfunction stage::function(CUmodule from, const char* name) {
  CUfunction found = nullptr;
  const auto call = d.get<row_cuModuleGetFunction>();
  if (call == nullptr) throw unsupported{"cuModuleGetFunction is not exported"};
  need(call(&found, from, name), "cuModuleGetFunction");
  return found;
}

void stage::launch(CUfunction f, CUstream on) {
  ++queued_;
  need(d.get<row_cuLaunchKernel>()(f, 1, 1, 1, 1, 1, 1, 0, on, nullptr, nullptr), "cuLaunchKernel");
}

CUstream stage::busy_stream() const {
  switch (busy_) {
    case stream_kind::legacy:
      return legacy;
    case stream_kind::blocking:
      return blocking;
    case stream_kind::per_thread:
      return per_thread;
    default:
      return nonblocking;
  }
}

void stage::keep_busy_with(CUfunction kernel, CUstream on, std::uint64_t ns, bool told) {
  if (flags_ != nullptr) {
    flags_[0] = 0;
    flags_[1] = 0;
  }
  std::uint64_t flags = told ? flags_on_device_ : 0;
  void* parameters[] = {&ns, &flags};
  ++queued_;
  by_host_ = false;
  untold_ = !told;
  need(d.get<row_cuLaunchKernel>()(kernel, 1, 1, 1, 1, 1, 1, 0, on, parameters, nullptr),
       "cuLaunchKernel of the kernel that keeps the stream busy");
  await_start();
}

void stage::keep_busy_by_graph(CUgraphExec graph, CUstream on) {
  const auto call = d.get<row_cuGraphLaunch>();
  if (call == nullptr) throw unsupported{"cuGraphLaunch is not exported"};
  ++queued_;
  untold_ = true;
  need(call(graph, on), "cuGraphLaunch");
  spin_begin_ns_ = now_ns();
}

void stage::keep_busy_by_host(CUstream on, std::uint64_t ns) {
  const auto call = d.get<row_cuLaunchHostFunc>();
  if (call == nullptr) throw unsupported{"cuLaunchHostFunc is not exported"};
  nap_.ns = ns;
  nap_.state = 0;
  by_host_ = true;
  ++queued_;
  need(call(
           on,
           [](void* given) {
             nap& n = *static_cast<nap*>(given);
             n.state = 1;
             timespec t{static_cast<time_t>(n.ns / 1'000'000'000),
                        static_cast<long>(n.ns % 1'000'000'000)};
             ::nanosleep(&t, nullptr);
             n.state = 2;
           },
           &nap_),
       "cuLaunchHostFunc");
  await_start();
}

// The work that was just put into a stream is known to run, or twenty milliseconds are over.
void stage::await_start() {
  spin_begin_ns_ = now_ns();
  while (!spin_started() && now_ns() - spin_begin_ns_ < 20'000'000) {
  }
  spin_begin_ns_ = now_ns();
}

bool stage::drain() {
  const auto wait = d.get<row_cuCtxSynchronize>();
  return wait != nullptr && wait() == CUDA_SUCCESS;
}

// As the shim's memory_kind() in entry.cpp.
hostwait_memory stage::memory_kind(const operand& end, bool& sync_memops) const {
  if (end.as == declared::array) return HOSTWAIT_MEMORY_ARRAY;
  if (end.address == nullptr || end.as == declared::nothing) return HOSTWAIT_MEMORY_UNKNOWN;
  if (d.cuPointerGetAttributes == nullptr) return HOSTWAIT_MEMORY_UNKNOWN;
  unsigned type = 0, managed = 0, sync = 0;
  CUmemoryPool pool = nullptr;
  CUpointer_attribute names[] = {CU_POINTER_ATTRIBUTE_MEMORY_TYPE, CU_POINTER_ATTRIBUTE_IS_MANAGED,
                                 CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE,
                                 CU_POINTER_ATTRIBUTE_SYNC_MEMOPS};
  void* values[] = {&type, &managed, &pool, &sync};
  if (d.cuPointerGetAttributes(4, names, values, reinterpret_cast<CUdeviceptr>(end.address)) !=
      CUDA_SUCCESS)
    return HOSTWAIT_MEMORY_UNKNOWN;
  sync_memops = sync_memops || (sync & 0xff) != 0;
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

std::uint64_t stage::range_bytes(const void* address) const {
  std::size_t bytes = 0;
  CUpointer_attribute names[] = {CU_POINTER_ATTRIBUTE_RANGE_SIZE};
  void* values[] = {&bytes};
  if (address == nullptr || d.cuPointerGetAttributes == nullptr ||
      d.cuPointerGetAttributes(1, names, values, reinterpret_cast<CUdeviceptr>(address)) !=
          CUDA_SUCCESS)
    return 0;
  return bytes;
}

bool stage::stream_captures(const call_facts& facts) const {
  if (!capture_open_ || !facts.has_stream || d.cuStreamIsCapturing == nullptr) return false;
  if (facts.stream <= 1 && !facts.per_thread) return false;  // the legacy stream cannot
  const std::uint64_t named = facts.stream == 0 ? 2 : facts.stream;
  CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_NONE;
  return d.cuStreamIsCapturing(reinterpret_cast<CUstream>(named), &status) == CUDA_SUCCESS &&
         status != CU_STREAM_CAPTURE_STATUS_NONE;
}

stream_kind stage::kind_of_stream(const call_facts& facts) const {
  if (own_is_forced_) return forced_own_;
  // Calls without a stream run on the null stream.
  const std::uint64_t handle = facts.has_stream ? facts.stream : 0;
  if (handle == 0) return facts.per_thread ? stream_kind::per_thread : stream_kind::legacy;
  if (handle == 1) return stream_kind::legacy;
  if (handle == 2) return stream_kind::per_thread;
  const auto is = [&](CUstream s) { return handle == reinterpret_cast<std::uint64_t>(s); };
  if (is(blocking)) return stream_kind::blocking;
  if (is(nonblocking)) return stream_kind::nonblocking;
  if (is(other_blocking)) return stream_kind::other_blocking;
  if (is(other_nonblocking)) return stream_kind::other_nonblocking;
  return stream_kind::none;
}

void stage::note_use(row_id row) {
  if (rows[row].type == row_type::pressure || rows[row].kind == HOSTWAIT_KIND_ASYNC_COPY ||
      rows[row].kind == HOSTWAIT_KIND_COPY)
    ++queued_;
}

void stage::begin(row_id row, const call_facts& facts) {
  result& out = *now_;
  called_ = true;
  out.symbol = rows[row].symbol;
  out.in_table = true;
  out.facts = facts;
  out.around.driver_version = driver_version;
  out.around.compute_capability = compute_capability;
  out.around.queued_since_idle = queued_;
  out.around.capture_open = capture_open_;
  out.around.new_function = new_function_;
  out.around.capture_on_stream = stream_captures(facts);
  const char* blocking_launches = ::getenv("CUDA_LAUNCH_BLOCKING");
  out.around.launch_blocking = blocking_launches != nullptr && blocking_launches[0] == '1';
  if (rows[row].kind != HOSTWAIT_KIND_EVENT_SYNC) out.own = kind_of_stream(facts);
  // For the tables both ends; the rules get what the shim would ask for.
  out.source = memory_kind(facts.source, out.around.sync_memops);
  out.destination = memory_kind(facts.destination, out.around.sync_memops);
  const pointer_needs needs = needs_of(row, facts);
  out.verdict = classify(row, facts, needs.source ? out.source : HOSTWAIT_MEMORY_UNKNOWN,
                         needs.destination ? out.destination : HOSTWAIT_MEMORY_UNKNOWN, out.around);
  // As the shim does: how long unpinning takes depends on a size that only the driver knows.
  if (rows[row].kind == HOSTWAIT_KIND_HOST_FREE && facts.bytes == 0)
    out.facts.bytes = range_bytes(facts.destination.address);
  out.own_cost_ns = own_cost_ns(row, out.facts, 120, 1, touches_managed(out.verdict));
  out.own_cost_known = own_cost_known(row) && rows[row].type == row_type::wait;
}

void stage::begin_other(const char* symbol) {
  result& out = *now_;
  called_ = true;
  out.symbol = symbol;
  out.in_table = false;
  out.verdict = {};
  out.own_cost_known = false;
}

void stage::stop(CUresult r) {
  now_->ns = now_ns() - start_ns_;
  ended_at_return_ = spin_ended();
  returned_ = r;
}

bool stage::play(const experiment& e, stream_kind busy, std::uint64_t spin_ns, result& out) {
  out.id = e.id;
  out.call = e.call;
  out.busy = busy;
  out.judged = e.judged;
  out.spin_ns = busy == stream_kind::none ? 0 : spin_ns;
  now_ = &out;
  busy_ = busy;
  spin_ns_ = spin_ns;
  own = {};
  own_is_forced_ = capture_open_ = new_function_ = called_ = ended_at_return_ = by_host_ = untold_ =
      false;
  returned_ = CUDA_SUCCESS;
  if (!drain()) return false;
  bool begun = false;
  try {
    if (e.devices > static_cast<unsigned>(devices))
      throw unsupported{"needs " + std::to_string(e.devices) + " devices"};
    begun = true;
    run_call(e, busy, spin_ns);
  } catch (const unsupported& missing) {
    out.what = outcome::unsupported;
    out.note = missing.why;
  }
  bool alive = drain();
  try {
    if (e.cleanup && begun) e.cleanup(*this);
  } catch (const unsupported& failed) {
    if (out.note.empty()) out.note = "cleanup: " + failed.why;
  }
  give_back();
  d.cuCtxSetCurrent(context);
  return drain() && alive;
}

void stage::run_call(const experiment& e, stream_kind busy, std::uint64_t spin_ns) {
  result& out = *now_;
  if (e.prepare) e.prepare(*this);
  if (!drain()) throw unsupported{"the context was lost in preparation"};
  touch_managed();
  queued_ = 0;
  if (busy != stream_kind::none) {
    if (e.occupy)
      e.occupy(*this, spin_ns);
    else
      keep_busy(busy_stream(), spin_ns);
  }
  e.make(*this);
  if (e.searches) return;
  if (!called_) throw unsupported{"the call was not reached"};
  if (returned_ != CUDA_SUCCESS && returned_ != CUDA_ERROR_NOT_READY) {
    if (!e.errors_fit) throw unsupported{d.name_of(returned_)};
  }
  if (returned_ != CUDA_SUCCESS && returned_ != CUDA_ERROR_NOT_READY)
    out.returned = d.name_of(returned_);
  if (busy == stream_kind::none) return;
  // What was left of the kernel when the call began decides, beyond the call's time when idle.
  const std::uint64_t late = start_ns_ - spin_begin_ns_;
  out.late = late * 2 > spin_ns;
  const std::uint64_t left = late < spin_ns ? spin_ns - late : 0;
  const std::uint64_t floor = out.idle_ns < left ? (out.idle_ns + left) / 2 : left;
  const bool stayed = out.ns > floor;
  out.blocked = stayed && ended_at_return_;
  if (stayed && !ended_at_return_) out.note = "long, but the kernel still ran at its return";
}

}  // namespace hostwait::probe
