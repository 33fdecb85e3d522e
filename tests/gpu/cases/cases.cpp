// SPDX-License-Identifier: Apache-2.0
// Copyright The hostwait authors
// Runs cases: cases_driver ID… (all of the program without arguments), cases_driver --list.
// Status: 77 no GPU, 3 a CUDA call failed, 4 a case's own statement does not hold.
#include "cases.hpp"

#include <pthread.h>

#include <cstring>
#include <string>
#include <vector>

namespace cases {

namespace {

constexpr const char* ptx = R"(.version 6.4
.target sm_75
.address_size 64
.visible .entry spin(.param .u64 ns) {
  .reg .pred %p; .reg .u64 %d<4>;
  ld.param.u64 %d0, [ns]; mov.u64 %d1, %globaltimer;
again:
  mov.u64 %d2, %globaltimer; sub.u64 %d3, %d2, %d1; setp.lt.u64 %p, %d3, %d0; @%p bra again;
  ret;
}
.visible .entry nothing() { ret; }
)";

std::vector<part>& parts() {
  static std::vector<part> all;
  return all;
}

std::vector<std::function<void()>> undo;
CUcontext context;
CUfunction spin, nothing;
bool failed = false;

void start() {
  const setup labelled;
  if (cuInit(0) != CUDA_SUCCESS) {
    printf("skipped: no GPU (cuInit failed)\n");
    exit(77);
  }
  CUdevice first;
  CUmodule module;
  MUST(cuDeviceGet(&first, 0));
  MUST(cuDevicePrimaryCtxRetain(&context, first));
  MUST(cuCtxSetCurrent(context));
  MUST(cuModuleLoadData(&module, ptx));
  MUST(cuModuleGetFunction(&spin, module, "spin"));
  MUST(cuModuleGetFunction(&nothing, module, "nothing"));
  busy(nullptr, 0.01);
  small_kernel(nullptr);
  idle();
}

void clean_up() {
  const setup labelled;
  idle();
  while (!undo.empty()) {
    undo.back()();
    undo.pop_back();
  }
  idle();
}

void run(const std::string& label, void (*body)()) {
  // A process frame: threads that the case starts carry the label too.
  const int token = hostwait_push_process(HOSTWAIT_LOG, HOSTWAIT_ALL, label.c_str());
  body();
  hostwait_pop_process(token);
  clean_up();
}

void run(const part& each) {
  const std::string id = each.id;
  run(id + " warm-up", each.observed);
  run(id + " case", each.observed);
  run(id + " warm-up", each.control);
  run(id + " control", each.control);
  printf("ran %s\n", each.id);
  fflush(stdout);
}

void launch(CUfunction kernel, CUstream on, void** parameters) {
  MUST(cuLaunchKernel(kernel, 1, 1, 1, 1, 1, 1, 0, on, parameters, nullptr));
}

}  // namespace

registration::registration(const part& each) {
  parts().push_back(each);
}

void expect(bool holds, const char* what) {
  if (holds) return;
  fprintf(stderr, "does not hold: %s\n", what);
  failed = true;
}

static CUstream new_stream(unsigned flags) {
  const setup labelled;
  CUstream made = nullptr;
  MUST(cuStreamCreate(&made, flags));
  undo.emplace_back([made] { MUST(cuStreamDestroy(made)); });
  return made;
}
CUstream stream() {
  return new_stream(CU_STREAM_NON_BLOCKING);
}
CUstream blocking_stream() {
  return new_stream(CU_STREAM_DEFAULT);
}

CUevent event() {
  const setup labelled;
  CUevent made = nullptr;
  MUST(cuEventCreate(&made, CU_EVENT_DISABLE_TIMING));
  undo.emplace_back([made] { MUST(cuEventDestroy(made)); });
  return made;
}

CUdeviceptr device(size_t bytes) {
  const setup labelled;
  CUdeviceptr made = 0;
  MUST(cuMemAlloc(&made, bytes));
  undo.emplace_back([made] { MUST(cuMemFree(made)); });
  return made;
}

CUdeviceptr pool(size_t bytes) {
  const setup labelled;
  CUdeviceptr made = 0;
  MUST(cuMemAllocAsync(&made, bytes, nullptr));
  MUST(cuStreamSynchronize(nullptr));
  return made;
}

CUdeviceptr managed(size_t bytes) {
  const setup labelled;
  CUdeviceptr made = 0;
  MUST(cuMemAllocManaged(&made, bytes, CU_MEM_ATTACH_GLOBAL));
  undo.emplace_back([made] { MUST(cuMemFree(made)); });
  memset(reinterpret_cast<void*>(made), 1, bytes);
  return made;
}

void* pinned(size_t bytes) {
  const setup labelled;
  void* made = nullptr;
  MUST(cuMemHostAlloc(&made, bytes, 0));
  undo.emplace_back([made] { MUST(cuMemFreeHost(made)); });
  memset(made, 1, bytes);
  return made;
}

void* pageable(size_t bytes) {
  void* made = malloc(bytes);
  expect(made != nullptr, "host memory");
  undo.emplace_back([made] { free(made); });
  memset(made, 1, bytes);
  return made;
}

void busy(CUstream on, double milliseconds) {
  const setup labelled;
  unsigned long long ns = static_cast<unsigned long long>(milliseconds * 1e6);
  void* parameters[] = {&ns};
  launch(spin, on, parameters);
}

void small_kernel(CUstream on) {
  launch(nothing, on, nullptr);
}

void idle() {
  const setup labelled;
  MUST(cuCtxSynchronize());
}

void order(CUstream first, CUstream then) {
  const CUevent between = event();
  MUST(cuEventRecord(between, first));
  MUST(cuStreamWaitEvent(then, between, 0));
}

std::thread worker(const char* name, std::function<void()> body) {
  return std::thread([name, body = std::move(body)] {
    pthread_setname_np(pthread_self(), name);
    MUST(cuCtxSetCurrent(context));
    body();
  });
}

}  // namespace cases

int main(int argc, char** argv) {
  if (argc == 2 && strcmp(argv[1], "--list") == 0) {
    for (const cases::part& each : cases::parts()) printf("%s\n", each.id);
    return 0;
  }
  for (int i = 1; i < argc; ++i) {
    bool known = false;
    for (const cases::part& each : cases::parts()) known |= strcmp(each.id, argv[i]) == 0;
    if (!known) {
      fprintf(stderr, "%s is no case of this program: see --list\n", argv[i]);
      return 2;
    }
  }
  cases::start();
  for (const cases::part& each : cases::parts()) {
    bool wanted = argc == 1;
    for (int i = 1; i < argc; ++i) wanted |= strcmp(each.id, argv[i]) == 0;
    if (wanted) cases::run(each);
  }
  return cases::failed ? 4 : 0;
}
