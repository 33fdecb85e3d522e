// SPDX-License-Identifier: Apache-2.0
// Copyright The hostwait authors
// The C++ examples of docs/advice.md, each as `before` (there is a finding) and `after` (there is
// none). What stands between "// advice: NAME before|after" and "// advice: end" is what the page
// shows: scripts/advice_doc.py copies it. Findings carry the label "NAME before" or "NAME after".
#include <cuda_runtime.h>

#include <cstdio>
#include <cstdlib>
#include <vector>

#include "hostwait/hostwait.h"

namespace {

void check(cudaError_t result, const char* call) {
  if (result == cudaSuccess) return;
  std::fprintf(stderr, "advice: %s: %s\n", call, cudaGetErrorString(result));
  std::exit(1);
}
#define CHECK(call) check(call, #call)

constexpr std::size_t mib = 1 << 20, bytes = 4 * mib;
constexpr int steps = 3;

std::size_t work_bytes = 4096 * mib;
int work_pieces = 24;
void* work = nullptr;

cudaStream_t stream, second;
cudaEvent_t done, events[2];
char *device, *pinned;
std::vector<char> ordinary(bytes);
cudaLibrary_t library;
std::size_t stack_bytes = 2048;

constexpr char ptx[] =
    ".version 7.0\n.target sm_75\n.address_size 64\n.visible .entry nothing() { ret; }\n";

// About 20 ms of work on an H200, so that a wait takes time.
void busy() {
  for (int i = 0; i < work_pieces; ++i) CHECK(cudaMemsetAsync(work, i, work_bytes, stream));
}
void queue_step(cudaStream_t on) {
  CHECK(cudaMemsetAsync(device, 1, bytes, on));
}
volatile char used;
void use(const char* data) {
  used = *data;
}

// The examples leave errors to run(), which looks at the last one.
namespace device_sync {
void before() {
  // advice: device_sync before
  queue_step(stream);
  cudaDeviceSynchronize();  // waits for every stream of the device
  std::puts("step queued");
  // advice: end
}
void after() {
  // advice: device_sync after
  queue_step(stream);
  cudaEventRecord(done, stream);
  std::puts("step queued");
  if (cudaEventQuery(done) == cudaSuccess) std::puts("step done");  // looks, does not wait
  // advice: end
}
}  // namespace device_sync

namespace stream_sync {
void before() {
  // advice: stream_sync before
  queue_step(stream);
  cudaStreamSynchronize(stream);  // the host waits, only to order two streams
  queue_step(second);
  // advice: end
}
void after() {
  // advice: stream_sync after
  queue_step(stream);
  cudaEventRecord(done, stream);
  cudaStreamWaitEvent(second, done, 0);  // the GPU waits, the host goes on
  queue_step(second);
  // advice: end
}
}  // namespace stream_sync

namespace event_sync {
void before() {
  // advice: event_sync before
  for (int step = 0; step < steps; ++step) {
    cudaMemcpyAsync(pinned, device, sizeof(float), cudaMemcpyDeviceToHost, stream);
    cudaEventRecord(done, stream);
    cudaEventSynchronize(done);  // the queue runs empty in every step
    use(pinned);
    queue_step(stream);
  }
  // advice: end
}
void after() {
  // advice: event_sync after
  for (int step = 0; step < steps; ++step) {
    char* slot = pinned + step % 2 * sizeof(float);
    cudaMemcpyAsync(slot, device, sizeof(float), cudaMemcpyDeviceToHost, stream);
    cudaEventRecord(events[step % 2], stream);
    queue_step(stream);
    // The step before: read it if it is there, else in a later step.
    const int before = (step + 1) % 2;
    if (step > 0 && cudaEventQuery(events[before]) == cudaSuccess)
      use(pinned + before * sizeof(float));
  }
  // advice: end
}
}  // namespace event_sync

namespace copy {
void before() {
  // advice: copy before
  cudaMemcpy(ordinary.data(), device, bytes, cudaMemcpyDeviceToHost);
  use(ordinary.data());
  // advice: end
}
void after() {
  // advice: copy after
  // Once: cudaMallocHost(&pinned, bytes); cudaEventCreateWithFlags(&done, cudaEventDisableTiming);
  cudaMemcpyAsync(pinned, device, bytes, cudaMemcpyDeviceToHost, stream);
  cudaEventRecord(done, stream);
  queue_step(second);                                    // go on meanwhile
  if (cudaEventQuery(done) == cudaSuccess) use(pinned);  // else look again later
  // advice: end
}
}  // namespace copy

namespace async_copy {
void before() {
  // advice: async_copy before
  std::vector<char> loss(sizeof(float));  // ordinary memory: "async" waits for the stream
  cudaMemcpyAsync(loss.data(), device, loss.size(), cudaMemcpyDeviceToHost, stream);
  // advice: end
}
void after() {
  // advice: async_copy after
  // Once: cudaMallocHost(&pinned, bytes);
  cudaMemcpyAsync(pinned, device, sizeof(float), cudaMemcpyDeviceToHost, stream);
  // advice: end
}
}  // namespace async_copy

namespace staging_limit {
void before() {
  // advice: staging_limit before
  for (int part = 0; part < 4; ++part) {
    cudaMemcpyAsync(device + part * mib, ordinary.data() + part * mib, mib, cudaMemcpyHostToDevice,
                    stream);  // the third one waits until there is room again
  }
  // advice: end
}
void after() {
  // advice: staging_limit after
  // Once: cudaMallocHost(&pinned, bytes), and fill it instead of ordinary memory; or
  // cudaHostRegister() on memory that stays.
  for (int part = 0; part < 4; ++part) {
    cudaMemcpyAsync(device + part * mib, pinned + part * mib, mib, cudaMemcpyHostToDevice, stream);
  }
  // advice: end
}
}  // namespace staging_limit

namespace memset_pinned {
void before() {
  // advice: memset before
  cudaMemset(pinned, 0, bytes);  // on device memory it would not wait
  // advice: end
}
void after() {
  // advice: memset after
  cudaMemsetAsync(pinned, 0, bytes, stream);
  // advice: end
}
}  // namespace memset_pinned

namespace free_block {
void before() {
  // advice: free before
  void* workspace = nullptr;
  cudaMalloc(&workspace, bytes);
  cudaMemsetAsync(workspace, 0, bytes, stream);
  cudaFree(workspace);  // waits for every stream
  // advice: end
}
void after() {
  // advice: free after
  void* workspace = nullptr;
  cudaMallocAsync(&workspace, bytes, stream);
  cudaMemsetAsync(workspace, 0, bytes, stream);
  cudaFreeAsync(workspace, stream);  // in the order of the stream
  // advice: end
}
}  // namespace free_block

namespace host_free {
void before() {
  // advice: host_free before
  void* staging = nullptr;
  cudaMallocHost(&staging, mib);
  cudaMemcpyAsync(staging, device, mib, cudaMemcpyDeviceToHost, stream);
  cudaFreeHost(staging);  // waits for every stream
  // advice: end
}
void after() {
  // advice: host_free after
  // Once: cudaMallocHost(&pinned, bytes);
  cudaMemcpyAsync(pinned, device, mib, cudaMemcpyDeviceToHost, stream);
  // advice: end
}
}  // namespace host_free

namespace module {
void use_library(cudaLibrary_t of) {
  unsigned kernels = 0;
  CHECK(cudaLibraryGetKernelCount(&kernels, of));
}
void before() {
  // advice: module before
  cudaLibrary_t generated = nullptr;
  cudaLibraryLoadData(&generated, ptx, nullptr, nullptr, 0, nullptr, nullptr, 0);
  use_library(generated);
  cudaLibraryUnload(generated);  // waits for every stream
  // advice: end
}
void after() {
  // advice: module after
  // Once: cudaLibraryLoadData(&library, ptx, nullptr, nullptr, 0, nullptr, nullptr, 0);
  use_library(library);
  // advice: end
}
}  // namespace module

namespace context {
void before() {
  // advice: context before
  queue_step(stream);
  cudaDeviceSetLimit(cudaLimitStackSize, stack_bytes += 1024);  // waits for every stream
  queue_step(stream);
  // advice: end
}
void after() {
  // advice: context after
  // Once, before the first work: cudaDeviceSetLimit(cudaLimitStackSize, stack_bytes);
  queue_step(stream);
  queue_step(stream);
  // advice: end
}
}  // namespace context

namespace queue_full {
void before() {
  // advice: queue_full before
  for (std::size_t row = 0; row < 2048; ++row) {
    cudaMemsetAsync(device + row * 1024, 0, 1024, stream);  // the queue holds about 1,000
  }
  // advice: end
}
void after() {
  // advice: queue_full after
  cudaMemsetAsync(device, 0, 2048 * 1024, stream);
  // advice: end
}
}  // namespace queue_full

namespace poll {
void before() {
  // advice: poll before
  cudaEventRecord(done, stream);
  while (cudaEventQuery(done) == cudaErrorNotReady) {
  }
  queue_step(second);
  // advice: end
}
void after() {
  // advice: poll after
  cudaEventRecord(done, stream);
  cudaStreamWaitEvent(second, done, 0);
  queue_step(second);
  // advice: end
}
}  // namespace poll

struct pair {
  const char* name;
  void (*before)();
  void (*after)();
};
constexpr pair pairs[] = {
    {"device_sync", device_sync::before, device_sync::after},
    {"stream_sync", stream_sync::before, stream_sync::after},
    {"event_sync", event_sync::before, event_sync::after},
    {"copy", copy::before, copy::after},
    {"async_copy", async_copy::before, async_copy::after},
    {"staging_limit", staging_limit::before, staging_limit::after},
    {"memset", memset_pinned::before, memset_pinned::after},
    {"free", free_block::before, free_block::after},
    {"host_free", host_free::before, host_free::after},
    {"module", module::before, module::after},
    {"context", context::before, context::after},
    {"queue_full", queue_full::before, queue_full::after},
    {"poll", poll::before, poll::after},
};

void settle() {
  CHECK(cudaDeviceSynchronize());
  (void)cudaGetLastError();  // what a query that is not ready leaves behind
}

void run(const pair& each, const char* which, void (*body)()) {
  settle();
  body();  // first uses load things: not part of what is shown
  settle();
  busy();
  char label[64];
  std::snprintf(label, sizeof label, "%s %s", each.name, which);
  const int token = hostwait_push_label(HOSTWAIT_LOG, HOSTWAIT_ALL, label);
  body();
  if (token > 0) hostwait_pop(token);
  const cudaError_t last = cudaGetLastError();
  if (last != cudaErrorNotReady) check(last, label);
  settle();
  std::printf("ran %s\n", label);
}

}  // namespace

int main() {
  if (const char* mibs = std::getenv("ADVICE_WORK_MIB"))
    work_bytes = std::strtoull(mibs, nullptr, 10) * mib;
  if (const char* pieces = std::getenv("ADVICE_WORK_PIECES")) work_pieces = std::atoi(pieces);
  const int token = hostwait_push_label(HOSTWAIT_ALLOW, HOSTWAIT_ALL, "set-up");
  CHECK(cudaMalloc(&work, work_bytes));
  CHECK(cudaMalloc(reinterpret_cast<void**>(&device), bytes));
  CHECK(cudaMallocHost(reinterpret_cast<void**>(&pinned), bytes));
  CHECK(cudaStreamCreate(&stream));  // blocking: a copy on the default stream waits for its work
  CHECK(cudaStreamCreate(&second));
  for (cudaEvent_t* event : {&done, &events[0], &events[1]})
    CHECK(cudaEventCreateWithFlags(event, cudaEventDisableTiming));
  const cudaError_t loaded =
      cudaLibraryLoadData(&library, ptx, nullptr, nullptr, 0, nullptr, nullptr, 0);
  for (const pair& each : pairs) {
    if (each.before == module::before && loaded != cudaSuccess) {
      std::printf("skip module: the driver compiles no PTX here: %s\n", cudaGetErrorString(loaded));
      continue;
    }
    run(each, "before", each.before);
    run(each, "after", each.after);
  }
  if (token > 0) hostwait_pop(token);
  return 0;
}
