// SPDX-License-Identifier: Apache-2.0
// Copyright The hostwait authors
// Several devices, contexts and their stack, primary contexts, fork. Runs with four devices.
#include <sys/wait.h>
#include <unistd.h>

#include <cstring>
#include <thread>

#include "sim_test.hpp"

using namespace sim_test;

// In a process of its own, where nothing has called cuInit yet.
TEST_CASE("before cuInit calls are refused", "[.uninitialized]") {
  int count = 0;
  CHECK(cuDeviceGetCount(&count) == CUDA_ERROR_NOT_INITIALIZED);
  SIM_OK(cuDriverGetVersion(&count));
  CHECK(count == 13000);
  CHECK(cuInit(1) == CUDA_ERROR_INVALID_VALUE);
  SIM_OK(cuInit(0));
  SIM_OK(cuDeviceGetCount(&count));
  CHECK(count == 4);
}

TEST_CASE("devices have names, attributes and bounds") {
  SIM_OK(cuInit(0));
  CUdevice device = -1;
  SIM_OK(cuDeviceGet(&device, 3));
  CHECK(cuDeviceGet(&device, 4) == CUDA_ERROR_INVALID_DEVICE);
  char name[64];
  SIM_OK(cuDeviceGetName(name, sizeof name, device));
  CHECK(!strcmp(name, "hostwait simulated device 3"));
  int major = 0, managed = 0;
  SIM_OK(cuDeviceGetAttribute(&major, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, device));
  SIM_OK(cuDeviceGetAttribute(&managed, CU_DEVICE_ATTRIBUTE_CONCURRENT_MANAGED_ACCESS, device));
  CHECK(major == 9);
  CHECK(managed == 1);
  CUuuid first, second;
  SIM_OK(cuDeviceGetUuid(&first, 0));
  SIM_OK(cuDeviceGetUuid(&second, 1));
  CHECK(memcmp(&first, &second, sizeof first) != 0);
  char bus[16];
  SIM_OK(cuDeviceGetPCIBusId(bus, sizeof bus, 2));
  SIM_OK(cuDeviceGetByPCIBusId(&device, bus));
  CHECK(device == 2);
}

TEST_CASE("the context stack") {
  own_context outer(0);
  CUcontext current = nullptr, popped = nullptr;
  CUdevice device;
  {
    own_context inner(1);
    SIM_OK(cuCtxGetDevice(&device));
    CHECK(device == 1);
    SIM_OK(cuCtxPopCurrent(&popped));
    CHECK(popped == inner.context);
    SIM_OK(cuCtxGetCurrent(&current));
    CHECK(current == outer.context);
    SIM_OK(cuCtxPushCurrent(inner.context));
  }
  SIM_OK(cuCtxGetDevice(&device));
  CHECK(device == 0);
  CHECK(cuCtxPushCurrent(popped) == CUDA_ERROR_INVALID_CONTEXT);
  CUresult elsewhere = CUDA_SUCCESS;
  std::thread([&] { elsewhere = cuCtxGetDevice(&device); }).join();
  CHECK(elsewhere == CUDA_ERROR_INVALID_CONTEXT);
}

TEST_CASE("a primary context is counted, and reset waits for its work") {
  SIM_OK(cuInit(0));
  CUcontext first = nullptr, second = nullptr;
  SIM_OK(cuDevicePrimaryCtxRetain(&first, 2));
  SIM_OK(cuDevicePrimaryCtxRetain(&second, 2));
  CHECK(first == second);
  SIM_OK(cuCtxPushCurrent(first));
  SIM_OK(cuDevicePrimaryCtxRelease(2));
  unsigned flags;
  int active = 0;
  SIM_OK(cuDevicePrimaryCtxGetState(2, &flags, &active));
  CHECK(active == 1);
  CUstream s = new_stream();
  CHECK(host_stops_behind(s, [] { SIM_OK(cuDevicePrimaryCtxReset(2)); }));
  SIM_OK(cuDevicePrimaryCtxGetState(2, &flags, &active));
  CHECK(active == 0);
  CHECK(cuStreamQuery(s) == CUDA_ERROR_INVALID_HANDLE);
  CUcontext popped;
  SIM_OK(cuCtxPopCurrent(&popped));
  SIM_OK(cuDevicePrimaryCtxRetain(&first, 2));
  CHECK(first != second);
  SIM_OK(cuDevicePrimaryCtxRelease(2));
}

TEST_CASE("destroying a context waits for its work") {
  SIM_OK(cuInit(0));
  CUcontext c = nullptr;
  SIM_OK(cuCtxCreate(&c, nullptr, 0, 1));
  CUstream s = new_stream();
  CHECK(host_stops_behind(s, [&] { SIM_OK(cuCtxDestroy(c)); }));
  CHECK(cuCtxSynchronize() == CUDA_ERROR_INVALID_CONTEXT);
}

TEST_CASE("work of one device does not stop waits on another") {
  own_context first(0);
  CUstream busy = new_stream();
  own_context second(1);
  CUdeviceptr d = new_memory(16);
  SIM_OK(hostwait_sim_hold(busy));
  CHECK_FALSE(host_stops_in([&] {
    SIM_OK(cuCtxSynchronize());
    SIM_OK(cuMemFree(d));
  }));
  CHECK(cuStreamQuery(busy) == CUDA_ERROR_NOT_READY);
  // The form of 13.0 names its context.
  void* entry = nullptr;
  SIM_OK(cuGetProcAddress("cuCtxSynchronize", &entry, 13000, 0, nullptr));
  auto synchronize = reinterpret_cast<CUresult (*)(CUcontext)>(entry);
  SIM_OK(synchronize(nullptr));
  CHECK(host_stops_in([&] { SIM_OK(synchronize(first.context)); }));
}

TEST_CASE("peers: access is switched, bytes travel, events order streams across devices") {
  own_context first(0);
  CUdeviceptr a = new_memory(64);
  CUstream on_first = new_stream();
  CUevent e = new_event();
  SIM_OK(cuMemsetD8(a, 7, 64));
  own_context second(1);
  CUdeviceptr b = new_memory(64);
  CUstream on_second = new_stream();
  int can = 0;
  SIM_OK(cuDeviceCanAccessPeer(&can, 0, 1));
  CHECK(can == 1);
  SIM_OK(cuCtxEnablePeerAccess(first.context, 0));
  CHECK(cuCtxEnablePeerAccess(first.context, 0) == CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED);
  SIM_OK(cuCtxDisablePeerAccess(first.context));
  SIM_OK(hostwait_sim_hold(on_first));
  SIM_OK(cuEventRecord(e, on_first));
  SIM_OK(cuStreamWaitEvent(on_second, e, 0));
  SIM_OK(cuMemcpyPeerAsync(b, second.context, a, first.context, 64, on_second));
  CHECK(*reinterpret_cast<char*>(b) == 0);
  hostwait_sim_release(on_first);
  SIM_OK(cuStreamSynchronize(on_second));
  CHECK(*reinterpret_cast<char*>(b) == 7);
  int ordinal = -1;
  SIM_OK(cuPointerGetAttribute(&ordinal, CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL, b));
  CHECK(ordinal == 1);
}

TEST_CASE("a child of an initialised process cannot use the driver") {
  SIM_OK(cuInit(0));
  pid_t child = fork();
  REQUIRE(child >= 0);
  if (child == 0) {
    int count;
    bool refused = cuDeviceGetCount(&count) == CUDA_ERROR_NOT_INITIALIZED &&
                   cuInit(0) == CUDA_ERROR_NOT_INITIALIZED;
    _exit(refused ? 0 : 1);
  }
  int status = -1;
  REQUIRE(waitpid(child, &status, 0) == child);
  CHECK(status == 0);
}
