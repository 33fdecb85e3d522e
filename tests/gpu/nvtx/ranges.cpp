// SPDX-License-Identifier: Apache-2.0
// Copyright The hostwait authors
// Waits inside plain NVTX 3 ranges: push and pop, start and end, domains, registered and wide
// strings. Comments say what each finding should bear (tests/gpu/expected_lines.py).
#include <cuda_runtime_api.h>
#include <nvtx3/nvToolsExt.h>
#include <stdio.h>
#include <stdlib.h>

static void must(cudaError_t error) {
  if (error == cudaSuccess) return;
  fprintf(stderr, "%s\n", cudaGetErrorString(error));
  exit(error == cudaErrorNoDevice || error == cudaErrorInsufficientDriver ? 77 : 3);
}

static nvtxEventAttributes_t event(nvtxMessageType_t type, nvtxMessageValue_t message) {
  nvtxEventAttributes_t made = {};
  made.version = NVTX_VERSION;
  made.size = NVTX_EVENT_ATTRIB_STRUCT_SIZE;
  made.messageType = type;
  made.message = message;
  return made;
}

int main() {
  cudaStream_t s;
  must(cudaStreamCreate(&s));
  must(cudaStreamSynchronize(s));  // expect: stream_sync; range
  nvtxRangePushA("train_step");
  must(cudaStreamSynchronize(s));  // expect: stream_sync; range train_step
  nvtxRangePushW(L"forward");
  must(cudaStreamSynchronize(s));  // expect: stream_sync; range train_step/forward
  nvtxDomainHandle_t domain = nvtxDomainCreateA("solver");
  nvtxMessageValue_t message;
  message.registered = nvtxDomainRegisterStringA(domain, "factorize");
  nvtxEventAttributes_t registered = event(NVTX_MESSAGE_TYPE_REGISTERED, message);
  nvtxDomainRangePushEx(domain, &registered);
  must(cudaStreamSynchronize(s));  // expect: stream_sync; range train_step/forward/solver:factorize
  nvtxDomainRangePop(domain);
  nvtxRangePop();
  nvtxRangePop();
  nvtxRangeId_t id = nvtxRangeStartA("epoch");
  must(cudaStreamSynchronize(s));  // expect: stream_sync; range epoch
  nvtxRangeEnd(id);
  must(cudaStreamSynchronize(s));  // expect: stream_sync; range
  puts("done");
  return 0;
}
