// SPDX-License-Identifier: Apache-2.0
// Copyright The hostwait authors
// Loading of libcuda: the copy that the process already has, else the system's.
#include "driver.hpp"

#include <dlfcn.h>
#include <pthread.h>

#include <atomic>
#include <cstring>

#include "thread_state.hpp"

namespace hostwait::cai {
namespace {

using get_proc_address = int (*)(const char*, void**, int, uint64_t, int*);
constexpr uint64_t legacy_stream_forms = 1;  // 1 and 2 are named explicitly, 0 is never passed

struct entry {
  size_t offset;       // in hostwait_cai_driver
  const char* name;    // for cuGetProcAddress
  int version;         // the form whose signature the table has
  const char* symbol;  // the same form's export
  bool required;
};

#define ENTRY(member, name, version, suffix, required) \
  { offsetof(hostwait_cai_driver, member), name, version, name suffix, required }
constexpr entry entries[] = {
    ENTRY(ctx_get_current, "cuCtxGetCurrent", 4000, "", true),
    ENTRY(ctx_push_current, "cuCtxPushCurrent", 4000, "_v2", true),
    ENTRY(ctx_pop_current, "cuCtxPopCurrent", 4000, "_v2", true),
    ENTRY(ctx_get_device, "cuCtxGetDevice", 2000, "", true),
    ENTRY(ctx_get_id, "cuCtxGetId", 12000, "", false),
    ENTRY(ctx_synchronize, "cuCtxSynchronize", 2000, "", true),
    ENTRY(primary_ctx_retain, "cuDevicePrimaryCtxRetain", 7000, "", true),
    ENTRY(stream_get_ctx, "cuStreamGetCtx", 9020, "", true),
    ENTRY(stream_get_flags, "cuStreamGetFlags", 7000, "", true),
    ENTRY(stream_query, "cuStreamQuery", 2000, "", true),
    ENTRY(stream_is_capturing, "cuStreamIsCapturing", 10000, "", true),
    ENTRY(stream_get_capture_info, "cuStreamGetCaptureInfo", 11030, "_v2", false),
    ENTRY(stream_wait_event, "cuStreamWaitEvent", 3020, "", true),
    ENTRY(event_create, "cuEventCreate", 2000, "", true),
    ENTRY(event_destroy, "cuEventDestroy", 4000, "_v2", true),
    ENTRY(event_record, "cuEventRecord", 2000, "", true),
    ENTRY(event_query, "cuEventQuery", 2000, "", true),
    ENTRY(event_synchronize, "cuEventSynchronize", 2000, "", true),
    ENTRY(pointer_get_attributes, "cuPointerGetAttributes", 7000, "", true),
    ENTRY(device_can_access_peer, "cuDeviceCanAccessPeer", 4000, "", true),
    ENTRY(device_get_attribute, "cuDeviceGetAttribute", 2000, "", true),
    ENTRY(thread_exchange_capture_mode, "cuThreadExchangeStreamCaptureMode", 10010, "", false),
    ENTRY(get_error_name, "cuGetErrorName", 6000, "", false),
};
#undef ENTRY

hostwait_cai_driver table;
std::atomic<bool> forked{false};
pthread_mutex_t loading = PTHREAD_MUTEX_INITIALIZER;

// In the child: a driver that was in use is dead, its handles are not to be passed to it.
void after_fork_in_child() {
  if (current_driver.load(std::memory_order_relaxed) != nullptr) {
    forked.store(true, std::memory_order_relaxed);
    current_driver.store(nullptr, std::memory_order_relaxed);
  }
  pthread_mutex_t unlocked = PTHREAD_MUTEX_INITIALIZER;
  memcpy(&loading, &unlocked, sizeof loading);
}

void watch_forks() {
  static bool watching = false;  // under `loading`
  if (watching) return;
  watching = true;
  pthread_atfork(nullptr, nullptr, after_fork_in_child);
}

const char* load(hostwait_cai_driver* out) {
  void* library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_NOLOAD);
  if (library == nullptr) library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) return "libcuda.so.1 (no NVIDIA driver here)";
  get_proc_address lookup = nullptr;
  *reinterpret_cast<void**>(&lookup) = dlsym(library, "cuGetProcAddress_v2");
  *out = hostwait_cai_driver{};
  out->size = sizeof *out;
  for (const entry& e : entries) {
    void* found = nullptr;
    int status = 0;
    if (lookup == nullptr ||
        lookup(e.name, &found, e.version, legacy_stream_forms, &status) != cu_success) {
      found = nullptr;
    }
    if (found == nullptr) found = dlsym(library, e.symbol);
    if (found == nullptr && e.required) return e.symbol;
    memcpy(reinterpret_cast<char*>(out) + e.offset, &found, sizeof found);
  }
  int (*init)(unsigned) = nullptr;
  *reinterpret_cast<void**>(&init) = dlsym(library, "cuInit");
  if (init == nullptr || init(0) != cu_success) return "cuInit (no usable device)";
  return nullptr;
}

}  // namespace

std::atomic<const hostwait_cai_driver*> current_driver{nullptr};

int require_driver(const error_sink& sink, const hostwait_cai_driver** out) {
  *out = loaded_driver();
  if (__builtin_expect(*out != nullptr, 1)) return HOSTWAIT_CAI_OK;
  if (forked.load(std::memory_order_relaxed)) {
    return fail(sink, HOSTWAIT_CAI_ERR_FORKED, "", -1,
                "the parent of this process used CUDA before fork(), which CUDA does not survive");
  }
  pthread_mutex_lock(&loading);
  watch_forks();
  const char* missing = nullptr;
  if (current_driver.load(std::memory_order_relaxed) == nullptr) {
    missing = load(&table);
    if (missing == nullptr) current_driver.store(&table, std::memory_order_release);
  }
  pthread_mutex_unlock(&loading);
  *out = current_driver.load(std::memory_order_acquire);
  if (missing == nullptr) return HOSTWAIT_CAI_OK;
  return fail(sink, HOSTWAIT_CAI_ERR_NO_DRIVER, "", -1, "the CUDA driver cannot be used: %s",
              missing);
}

}  // namespace hostwait::cai

using namespace hostwait::cai;

int hostwait_cai_set_driver(const hostwait_cai_driver* given) {
  if (given != nullptr) {
    for (const entry& e : entries) {
      void* function = nullptr;
      if (e.offset + sizeof function > given->size) {
        if (e.required) return HOSTWAIT_CAI_ERR_INVALID;
        continue;
      }
      memcpy(&function, reinterpret_cast<const char*>(given) + e.offset, sizeof function);
      if (function == nullptr && e.required) return HOSTWAIT_CAI_ERR_INVALID;
    }
  }
  pthread_mutex_lock(&loading);
  watch_forks();
  forget_everything();
  forked.store(false, std::memory_order_relaxed);
  current_driver.store(nullptr, std::memory_order_relaxed);
  if (given != nullptr) {
    table = hostwait_cai_driver{};
    memcpy(&table, given, given->size < sizeof table ? given->size : sizeof table);
    table.size = sizeof table;
    current_driver.store(&table, std::memory_order_release);
  }
  pthread_mutex_unlock(&loading);
  return HOSTWAIT_CAI_OK;
}
