// SPDX-License-Identifier: Apache-2.0
// Copyright The hostwait authors
// Exports and cuGetProcAddress: every name of the stub, versions, stream flags, both forms.
#include <dlfcn.h>

#include <set>
#include <string>

#include "sim_test.hpp"

namespace {

struct exported {
  const char* symbol;
  const char* base;
  int version;
  bool per_thread;
};
const exported all[] = {
#define HOSTWAIT_SIM_EXPORT(symbol, base, version, per_thread) \
  {#symbol, #base, version, per_thread != 0},
#include "exports.def"
#undef HOSTWAIT_SIM_EXPORT
};

void* driver() {
  static void* handle = dlopen("libcuda.so.1", RTLD_NOW | RTLD_NOLOAD);
  return handle;
}

using get_v1 = CUresult (*)(const char*, void**, int, cuuint64_t);
using get_v2 = CUresult (*)(const char*, void**, int, cuuint64_t, CUdriverProcAddressQueryResult*);

void* asked(const char* name, int version, cuuint64_t flags,
            CUdriverProcAddressQueryResult expected = CU_GET_PROC_ADDRESS_SUCCESS) {
  void* found = reinterpret_cast<void*>(1);
  CUdriverProcAddressQueryResult status = CU_GET_PROC_ADDRESS_SUCCESS;
  SIM_OK(cuGetProcAddress(name, &found, version, flags, &status));
  CHECK(status == expected);
  return found;
}

}  // namespace

TEST_CASE("every export of the stub is there and is found by name and version") {
  REQUIRE(std::size(all) == 637);
  for (const exported& e : all) {
    INFO(e.symbol);
    void* address = dlsym(driver(), e.symbol);
    REQUIRE(address);
    CHECK(asked(e.base, e.version,
                e.per_thread ? CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM
                             : CU_GET_PROC_ADDRESS_LEGACY_STREAM) == address);
  }
}

TEST_CASE("no two exports share an address") {
  std::set<void*> addresses;
  for (const exported& e : all) addresses.insert(dlsym(driver(), e.symbol));
  CHECK(addresses.size() == std::size(all));
}

TEST_CASE("the version chooses the newest form that the caller knows") {
  void* v1 = dlsym(driver(), "cuMemAlloc");
  void* v2 = dlsym(driver(), "cuMemAlloc_v2");
  CHECK(asked("cuMemAlloc", 2000, 0) == v1);
  CHECK(asked("cuMemAlloc", 3010, 0) == v1);
  CHECK(asked("cuMemAlloc", 3020, 0) == v2);
  CHECK(asked("cuMemAlloc", 13000, 0) == v2);
  CHECK(asked("cuCtxSynchronize", 12080, 0) == dlsym(driver(), "cuCtxSynchronize"));
  CHECK(asked("cuCtxSynchronize", 13000, 0) == dlsym(driver(), "cuCtxSynchronize_v2"));
  CHECK(asked("cuEventElapsedTime", 12080, 0) == dlsym(driver(), "cuEventElapsedTime_v2"));
}

TEST_CASE("the flags choose between legacy and per-thread forms") {
  constexpr cuuint64_t legacy = CU_GET_PROC_ADDRESS_LEGACY_STREAM;
  constexpr cuuint64_t own = CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM;
  CHECK(asked("cuStreamSynchronize", 13000, legacy) == dlsym(driver(), "cuStreamSynchronize"));
  CHECK(asked("cuStreamSynchronize", 13000, own) == dlsym(driver(), "cuStreamSynchronize_ptsz"));
  CHECK(asked("cuMemcpyDtoH", 13000, own) == dlsym(driver(), "cuMemcpyDtoH_v2_ptds"));
  CHECK(asked("cuMemcpyDtoH", 13000, 0) == dlsym(driver(), "cuMemcpyDtoH_v2"));
  CHECK(asked("cuMemAlloc", 13000, own) == dlsym(driver(), "cuMemAlloc_v2"));
  // Older than the per-thread forms: the legacy one.
  CHECK(asked("cuStreamSynchronize", 6050, own) == dlsym(driver(), "cuStreamSynchronize"));
}

TEST_CASE("names and versions that do not exist") {
  CHECK(asked("cuNoSuchCall", 13000, 0, CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND) == nullptr);
  CHECK(asked("cuMemAlloc_v2", 13000, 0, CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND) == nullptr);
  CHECK(asked("cuMemAllocAsync", 11010, 0, CU_GET_PROC_ADDRESS_VERSION_NOT_SUFFICIENT) == nullptr);
  void* found;
  CHECK(cuGetProcAddress("cuInit", &found, 14000, 0, nullptr) == CUDA_ERROR_INVALID_VALUE);
  CHECK(cuGetProcAddress(nullptr, &found, 13000, 0, nullptr) == CUDA_ERROR_INVALID_VALUE);
  CHECK(cuGetProcAddress("cuInit", &found, 13000, 3, nullptr) == CUDA_ERROR_INVALID_VALUE);
}

TEST_CASE("cuGetProcAddress is found by itself, in the form of the version") {
  void* first = asked("cuGetProcAddress", 11030, 0);
  void* second = asked("cuGetProcAddress", 12000, 0);
  CHECK(first == dlsym(driver(), "cuGetProcAddress"));
  CHECK(second == dlsym(driver(), "cuGetProcAddress_v2"));
  void* found = nullptr;
  CHECK(reinterpret_cast<get_v1>(first)("cuInit", &found, 13000, 0) == CUDA_SUCCESS);
  CHECK(found == dlsym(driver(), "cuInit"));
  CHECK(reinterpret_cast<get_v1>(first)("cuNoSuchCall", &found, 13000, 0) == CUDA_ERROR_NOT_FOUND);
  CHECK(found == nullptr);
  CHECK(reinterpret_cast<get_v2>(second)("cuInit", &found, 13000, 0, nullptr) == CUDA_SUCCESS);
  CHECK(found == dlsym(driver(), "cuInit"));
}

TEST_CASE("pointers work: the per-thread form uses the calling thread's stream") {
  sim_test::own_context context;
  auto query = reinterpret_cast<CUresult (*)(CUstream)>(
      asked("cuStreamQuery", 13000, CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM));
  SIM_OK(hostwait_sim_hold(CU_STREAM_PER_THREAD));
  CHECK(query(nullptr) == CUDA_ERROR_NOT_READY);
  hostwait_sim_release_all();
}

TEST_CASE("there are no private export tables") {
  SIM_OK(cuInit(0));
  const void* table = &table;
  CUuuid id{};
  CHECK(cuGetExportTable(&table, &id) == CUDA_ERROR_NOT_FOUND);
  CHECK(table == nullptr);
}

TEST_CASE("what is not simulated says so and is counted") {
  SIM_OK(cuInit(0));
  CHECK(hostwait_sim_is_simulated("cuTexRefDestroy") == 0);
  CHECK(hostwait_sim_is_simulated("cuMemAlloc_v2") == 1);
  CHECK(hostwait_sim_is_simulated("cuNoSuchCall") == -1);
  uint64_t before = hostwait_sim_unsupported_calls();
  auto destroy = reinterpret_cast<CUresult (*)(void*)>(dlsym(driver(), "cuTexRefDestroy"));
  CHECK(destroy(nullptr) == CUDA_ERROR_NOT_SUPPORTED);
  CHECK(hostwait_sim_unsupported_calls() == before + 1);
  CHECK(hostwait_sim_calls("cuTexRefDestroy") == 1);
}

TEST_CASE("results have names and texts") {
  const char* text = nullptr;
  SIM_OK(cuGetErrorName(CUDA_ERROR_NOT_PERMITTED, &text));
  CHECK(std::string(text) == "CUDA_ERROR_NOT_PERMITTED");
  SIM_OK(cuGetErrorString(CUDA_ERROR_OUT_OF_MEMORY, &text));
  CHECK(std::string(text) == "out of memory");
  CHECK(cuGetErrorName(static_cast<CUresult>(12345), &text) == CUDA_ERROR_INVALID_VALUE);
}
