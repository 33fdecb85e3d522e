// SPDX-License-Identifier: Apache-2.0
// Copyright The hostwait authors
// A library with a copy of NVTX of its own, as PyTorch and CuPy have one each.
#include <nvtx3/nvToolsExt.h>

extern "C" __attribute__((visibility("default"))) int plugin_push(const char* name) {
  return nvtxRangePushA(name);
}
extern "C" __attribute__((visibility("default"))) int plugin_pop() {
  return nvtxRangePop();
}
// A range in a domain of the library's own, whose name is registered as a wide string.
extern "C" __attribute__((visibility("default"))) int plugin_push_own(const char* domain_name) {
  nvtxDomainHandle_t domain = nvtxDomainCreateA(domain_name);
  nvtxEventAttributes_t event = {};
  event.version = NVTX_VERSION;
  event.size = NVTX_EVENT_ATTRIB_STRUCT_SIZE;
  event.messageType = NVTX_MESSAGE_TYPE_REGISTERED;
  event.message.registered = nvtxDomainRegisterStringW(domain, L"größer");
  const int level = nvtxDomainRangePushEx(domain, &event);
  nvtxDomainDestroy(domain);  // its ranges stay open
  return level;
}
