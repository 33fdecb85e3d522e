// SPDX-License-Identifier: Apache-2.0
// Copyright The hostwait authors
// A stand-in for libcuda with a dozen entry points, built several times with other SONAMEs, tags
// and versions. It is a test double: it says which of its functions ran last, and nothing else.
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#ifndef STANDIN_TAG
#define STANDIN_TAG "a"
#endif

static const char* last = "";
static unsigned calls;

const char* standin_last(void) {
  return last;
}
unsigned standin_calls(void) {
  return calls;
}
const char* standin_tag(void) {
  return STANDIN_TAG;
}

static int ran(const char* symbol) {
  last = symbol;
  ++calls;
  return 0;
}

int cuInit(unsigned flags) {
  return (void)flags, ran("cuInit");
}
int cuDriverGetVersion(int* version) {
  return *version = 13000, 0;
}
int cuCtxSynchronize(void) {
  return ran("cuCtxSynchronize");
}
int cuCtxSynchronize_v2(void* context) {
  return (void)context, ran("cuCtxSynchronize_v2");
}
int cuStreamSynchronize(void* stream) {
  return (void)stream, ran("cuStreamSynchronize");
}
int cuStreamSynchronize_ptsz(void* stream) {
  return (void)stream, ran("cuStreamSynchronize_ptsz");
}
int cuMemcpyDtoH_v2(void* to, uint64_t from, size_t bytes) {
  return (void)to, (void)from, (void)bytes, ran("cuMemcpyDtoH_v2");
}
int cuMemcpyDtoH_v2_ptds(void* to, uint64_t from, size_t bytes) {
  return (void)to, (void)from, (void)bytes, ran("cuMemcpyDtoH_v2_ptds");
}
int cuMemFree_v2(uint64_t at) {
  return (void)at, ran("cuMemFree_v2");
}
int cuEventSynchronize(void* event) {
  return (void)event, ran("cuEventSynchronize");
}
int cuDeviceGetCount(int* count) {
  return *count = 1, ran("cuDeviceGetCount");
}
static int newer_event_synchronize(void* event) {
  return (void)event, ran("newer");
}

int cuGetProcAddress(const char* name, void** out, int version, uint64_t flags);
int cuGetProcAddress_v2(const char* name, void** out, int version, uint64_t flags, int* status);

static int search(const char* name, void** out, int version, uint64_t flags) {
  static const struct {
    const char* name;
    int version, per_thread;
    void* function;
  } table[] = {
      {"cuInit", 2000, 0, (void*)cuInit},
      {"cuCtxSynchronize", 13000, 0, (void*)cuCtxSynchronize_v2},
      {"cuCtxSynchronize", 2000, 0, (void*)cuCtxSynchronize},
      {"cuStreamSynchronize", 7000, 1, (void*)cuStreamSynchronize_ptsz},
      {"cuStreamSynchronize", 2000, 0, (void*)cuStreamSynchronize},
      {"cuMemcpyDtoH", 7000, 1, (void*)cuMemcpyDtoH_v2_ptds},
      {"cuMemcpyDtoH", 3020, 0, (void*)cuMemcpyDtoH_v2},
      {"cuMemFree", 3020, 0, (void*)cuMemFree_v2},
      // A driver newer than the table: a form of a catalogue name that is no export.
      {"cuEventSynchronize", 90000, 0, (void*)newer_event_synchronize},
      {"cuEventSynchronize", 2000, 0, (void*)cuEventSynchronize},
      {"cuDeviceGetCount", 2000, 0, (void*)cuDeviceGetCount},
      {"cuGetProcAddress", 12000, 0, (void*)cuGetProcAddress_v2},
      {"cuGetProcAddress", 11030, 0, (void*)cuGetProcAddress},
  };
  *out = NULL;
  for (size_t i = 0; i < sizeof table / sizeof *table; ++i) {
    if (strcmp(name, table[i].name) != 0 || version < table[i].version) continue;
    if (table[i].per_thread && (flags & 2) == 0) continue;
    *out = table[i].function;
    return 0;
  }
  return 500;
}

int cuGetProcAddress(const char* name, void** out, int version, uint64_t flags) {
  return search(name, out, version, flags);
}
int cuGetProcAddress_v2(const char* name, void** out, int version, uint64_t flags, int* status) {
  const int result = search(name, out, version, flags);
  if (status != NULL) *status = result == 0 ? 0 : 1;
  return result;
}
