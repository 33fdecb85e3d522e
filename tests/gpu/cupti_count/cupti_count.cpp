// SPDX-License-Identifier: Apache-2.0
// Copyright The hostwait authors
// An independent witness: a CUPTI callback subscriber that counts what the driver says happened.
//
// Loaded by CUDA itself (CUDA_INJECTION64_PATH=libcupti_count.so); at exit it writes tab-separated
// lines to the file that CUPTI_COUNT_OUTPUT names (a "%p" in it becomes the process id):
//   driver  SYMBOL  calls  over 20 us  over own cost  total ns  max ns
//   runtime SYMBOL  calls  over 20 us  over own cost  total ns  max ns
// A call's own cost is hostwait's: 120 us, and its bytes at 1 GB/s where it is a flat copy.
//   sync    stream|context|event|wait_event  records
// The same file serves the benchmarks: cupti_count_subscribe() and cupti_count_unsubscribe().
#include <cuda.h>
#include <cupti.h>
#include <time.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>

namespace {

constexpr std::uint64_t long_call_ns = 20000, own_cost_ns = 120000;
constexpr std::size_t max_cbid = 4096;

struct counter {
  std::atomic<const char*> name{nullptr};
  std::atomic<std::uint64_t> calls{0}, longer{0}, over_own{0}, total_ns{0}, max_ns{0};
};
std::array<counter, max_cbid> driver_calls, runtime_calls;
std::array<std::atomic<std::uint64_t>, 8> sync_records;
CUpti_SubscriberHandle subscriber;
bool subscribed;

std::uint64_t now() {
  timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return static_cast<std::uint64_t>(t.tv_sec) * 1000000000u + static_cast<std::uint64_t>(t.tv_nsec);
}

// The bytes of the flat copies and fills; 0 for every other call.
std::uint64_t bytes_of(CUpti_CallbackDomain domain, CUpti_CallbackId id, const void* parameters) {
  if (domain != CUPTI_CB_DOMAIN_DRIVER_API || parameters == nullptr) return 0;
#define SIZE_OF(call, member)          \
  case CUPTI_DRIVER_TRACE_CBID_##call: \
    return static_cast<const call##_params*>(parameters)->member
  switch (id) {
    SIZE_OF(cuMemcpyHtoD_v2, ByteCount);
    SIZE_OF(cuMemcpyHtoD_v2_ptds, ByteCount);
    SIZE_OF(cuMemcpyDtoH_v2, ByteCount);
    SIZE_OF(cuMemcpyDtoH_v2_ptds, ByteCount);
    SIZE_OF(cuMemcpyDtoD_v2, ByteCount);
    SIZE_OF(cuMemcpyDtoD_v2_ptds, ByteCount);
    SIZE_OF(cuMemcpyHtoDAsync_v2, ByteCount);
    SIZE_OF(cuMemcpyHtoDAsync_v2_ptsz, ByteCount);
    SIZE_OF(cuMemcpyDtoHAsync_v2, ByteCount);
    SIZE_OF(cuMemcpyDtoHAsync_v2_ptsz, ByteCount);
    SIZE_OF(cuMemcpyDtoDAsync_v2, ByteCount);
    SIZE_OF(cuMemcpyDtoDAsync_v2_ptsz, ByteCount);
    SIZE_OF(cuMemcpy, ByteCount);
    SIZE_OF(cuMemcpyAsync, ByteCount);
    SIZE_OF(cuMemsetD8_v2, N);
    SIZE_OF(cuMemsetD8Async, N);
    default:
      return 0;
  }
#undef SIZE_OF
}

void CUPTIAPI on_call(void*, CUpti_CallbackDomain domain, CUpti_CallbackId id, const void* data) {
  if (domain != CUPTI_CB_DOMAIN_DRIVER_API && domain != CUPTI_CB_DOMAIN_RUNTIME_API) return;
  if (id >= max_cbid) return;
  const auto* call = static_cast<const CUpti_CallbackData*>(data);
  // correlationData is a word of ours that lives from a call's entry to its exit.
  if (call->callbackSite == CUPTI_API_ENTER) {
    *call->correlationData = now();
    return;
  }
  const std::uint64_t ns = now() - *call->correlationData;
  counter& c = (domain == CUPTI_CB_DOMAIN_DRIVER_API ? driver_calls : runtime_calls)[id];
  if (c.name.load(std::memory_order_relaxed) == nullptr) {
    // CUPTI's own table of names: it outlives the call.
    const char* name = nullptr;
    cuptiGetCallbackName(domain, id, &name);
    c.name.store(name, std::memory_order_relaxed);
  }
  c.calls.fetch_add(1, std::memory_order_relaxed);
  c.total_ns.fetch_add(ns, std::memory_order_relaxed);
  if (ns > long_call_ns) {
    c.longer.fetch_add(1, std::memory_order_relaxed);
    // 1 GB/s is a byte per nanosecond.
    if (ns > own_cost_ns + bytes_of(domain, id, call->functionParams))
      c.over_own.fetch_add(1, std::memory_order_relaxed);
  }
  std::uint64_t seen = c.max_ns.load(std::memory_order_relaxed);
  while (ns > seen && !c.max_ns.compare_exchange_weak(seen, ns, std::memory_order_relaxed)) {
  }
}

void CUPTIAPI give_buffer(std::uint8_t** buffer, std::size_t* size, std::size_t* records) {
  *size = std::size_t{1} << 20;
  *buffer = static_cast<std::uint8_t*>(std::aligned_alloc(8, *size));
  *records = 0;
}

void CUPTIAPI take_buffer(CUcontext, std::uint32_t, std::uint8_t* buffer, std::size_t,
                          std::size_t valid) {
  CUpti_Activity* record = nullptr;
  while (cuptiActivityGetNextRecord(buffer, valid, &record) == CUPTI_SUCCESS) {
    if (record->kind != CUPTI_ACTIVITY_KIND_SYNCHRONIZATION) continue;
    const auto* sync = reinterpret_cast<const CUpti_ActivitySynchronization2*>(record);
    const auto type = static_cast<std::size_t>(sync->type);
    if (type < sync_records.size()) sync_records[type].fetch_add(1, std::memory_order_relaxed);
  }
  std::free(buffer);
}

void write_file() {
  const char* wanted = std::getenv("CUPTI_COUNT_OUTPUT");
  if (wanted == nullptr) return;
  std::string path = wanted;
  const std::size_t at = path.find("%p");
  if (at != std::string::npos) path.replace(at, 2, std::to_string(getpid()));
  std::FILE* out = std::fopen(path.c_str(), "w");
  if (out == nullptr) return;
  const auto print = [out](const char* domain, const std::array<counter, max_cbid>& calls) {
    for (const counter& c : calls) {
      if (c.calls == 0) continue;
      const char* name = c.name.load();
      std::fprintf(
          out, "%s\t%s\t%llu\t%llu\t%llu\t%llu\t%llu\n", domain, name ? name : "?",
          static_cast<unsigned long long>(c.calls), static_cast<unsigned long long>(c.longer),
          static_cast<unsigned long long>(c.over_own), static_cast<unsigned long long>(c.total_ns),
          static_cast<unsigned long long>(c.max_ns));
    }
  };
  print("driver", driver_calls);
  print("runtime", runtime_calls);
  const char* const types[] = {"unknown", "event", "wait_event", "stream", "context"};
  for (std::size_t i = 0; i < 5; i++) {
    std::fprintf(out, "sync\t%s\t%llu\n", types[i],
                 static_cast<unsigned long long>(sync_records[i]));
  }
  std::fclose(out);
}

void write_counts() {
  if (std::getenv("CUPTI_COUNT_OUTPUT") == nullptr) return;
  cuptiActivityFlushAll(0);
  write_file();
}

// Once more when the library is finalized: the runtime tears down in exit handlers of its own.
__attribute__((destructor)) void write_last() {
  if (subscribed) write_file();
}

}  // namespace

extern "C" {

// Callbacks on both API domains, as a tracing tool has them. 0, or CUPTI's error.
__attribute__((visibility("default"))) int cupti_count_subscribe(void) {
  CUptiResult result = cuptiSubscribe(&subscriber, on_call, nullptr);
  if (result == CUPTI_SUCCESS)
    result = cuptiEnableDomain(1, subscriber, CUPTI_CB_DOMAIN_DRIVER_API);
  if (result == CUPTI_SUCCESS)
    result = cuptiEnableDomain(1, subscriber, CUPTI_CB_DOMAIN_RUNTIME_API);
  subscribed = result == CUPTI_SUCCESS;
  return static_cast<int>(result);
}

__attribute__((visibility("default"))) int cupti_count_unsubscribe(void) {
  if (!subscribed) return 0;
  subscribed = false;
  return static_cast<int>(cuptiUnsubscribe(subscriber));
}

// What CUDA calls in the library that CUDA_INJECTION64_PATH names.
__attribute__((visibility("default"))) int InitializeInjection(void) {
  const int error = cupti_count_subscribe();
  if (error != 0) {
    std::fprintf(stderr, "cupti_count: cannot subscribe: CUPTI error %d\n", error);
    return 1;
  }
  if (cuptiActivityRegisterCallbacks(give_buffer, take_buffer) != CUPTI_SUCCESS ||
      cuptiActivityEnable(CUPTI_ACTIVITY_KIND_SYNCHRONIZATION) != CUPTI_SUCCESS) {
    std::fprintf(stderr, "cupti_count: no synchronization records\n");
  }
  std::atexit(write_counts);
  return 1;
}
}
