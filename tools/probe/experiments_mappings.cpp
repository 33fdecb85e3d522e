// SPDX-License-Identifier: Apache-2.0
// Copyright The hostwait authors
// Virtual memory (create, reserve, map, set access, unmap, release) and memory of other processes.
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstring>

#include "stage.hpp"
#include "worker.hpp"

namespace hostwait::probe {

namespace {

constexpr std::size_t bytes = std::size_t{64} << 20;

CUmemAllocationProp properties(stage& s) {
  CUmemAllocationProp p{};
  p.type = CU_MEM_ALLOCATION_TYPE_PINNED;
  p.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
  p.location.id = s.device;
  return p;
}

// Steps in order; each experiment stops before the one it measures.
void create(stage& s) {
  const CUmemAllocationProp p = properties(s);
  s.use_other("cuMemCreate", s.d.cuMemCreate, &s.own.handle, bytes, &p, 0ull);
}
void reserve(stage& s) {
  s.use_other("cuMemAddressReserve", s.d.cuMemAddressReserve, &s.own.second, bytes, std::size_t{0},
              CUdeviceptr{0}, 0ull);
}
void map(stage& s) {
  s.use<row_cuMemMap>(s.own.second, bytes, std::size_t{0}, s.own.handle, 0ull);
  s.own.mapped = true;
}
CUmemAccessDesc access(stage& s) {
  CUmemAccessDesc a{};
  a.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
  a.location.id = s.device;
  a.flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
  return a;
}
void allow(stage& s) {
  const CUmemAccessDesc a = access(s);
  s.use<row_cuMemSetAccess>(s.own.second, bytes, &a, std::size_t{1});
}

void take_down(stage& s) {
  if (s.own.mapped) s.d.get<row_cuMemUnmap>()(s.own.second, bytes);
  if (s.own.handle) s.d.get<row_cuMemRelease>()(s.own.handle);
  if (s.own.second) s.d.get<row_cuMemAddressFree>()(s.own.second, bytes);
  s.own.mapped = false;
  s.own.handle = 0;
  s.own.second = 0;
}

void virtual_memory(catalogue& c) {
  const auto add = [&c](const char* name, const char* what, std::function<void(stage&)> prepare,
                        std::function<void(stage&)> make) {
    auto& e = c.add(std::string("mapping/") + name, what, std::move(make));
    e.prepare = std::move(prepare);
    e.cleanup = take_down;
  };
  add("cuMemCreate/64M", "physical memory", nullptr, [](stage& s) {
    const CUmemAllocationProp p = properties(s);
    s.measured_other("cuMemCreate", s.d.cuMemCreate, &s.own.handle, bytes, &p, 0ull);
  });
  add("cuMemAddressReserve/64M", "addresses", nullptr, [](stage& s) {
    s.measured_other("cuMemAddressReserve", s.d.cuMemAddressReserve, &s.own.second, bytes,
                     std::size_t{0}, CUdeviceptr{0}, 0ull);
  });
  add(
      "cuMemMap/64M", "map", [](stage& s) { create(s), reserve(s); },
      [](stage& s) {
        s.own.mapped = s.measured<row_cuMemMap>(s.own.second, bytes, std::size_t{0}, s.own.handle,
                                                0ull) == CUDA_SUCCESS;
      });
  add(
      "cuMemSetAccess/64M", "make a mapping usable",
      [](stage& s) { create(s), reserve(s), map(s); },
      [](stage& s) {
        const CUmemAccessDesc a = access(s);
        s.measured<row_cuMemSetAccess>(s.own.second, bytes, &a, std::size_t{1});
      });
  const auto usable = [](stage& s) { create(s), reserve(s), map(s), allow(s); };
  add("cuMemUnmap/64M", "unmap", usable, [](stage& s) {
    if (s.measured<row_cuMemUnmap>(s.own.second, bytes) == CUDA_SUCCESS) s.own.mapped = false;
  });
  add("cuMemRelease/64M", "release while mapped", usable, [](stage& s) {
    if (s.measured<row_cuMemRelease>(s.own.handle) == CUDA_SUCCESS) s.own.handle = 0;
  });
  add(
      "cuMemRelease/64M_unmapped", "release the last reference", [](stage& s) { create(s); },
      [](stage& s) {
        if (s.measured<row_cuMemRelease>(s.own.handle) == CUDA_SUCCESS) s.own.handle = 0;
      });
  add(
      "cuMemAddressFree/64M", "addresses", [](stage& s) { reserve(s); },
      [](stage& s) {
        if (s.measured<row_cuMemAddressFree>(s.own.second, bytes) == CUDA_SUCCESS) s.own.second = 0;
      });
}

// A process that owns device memory: it writes the handle, keeps the memory until its input ends.
struct owner {
  pid_t pid = -1;
  int keep = -1;
  CUipcMemHandle handle{};

  void start(int device);
  void end() {
    if (keep >= 0) ::close(keep);
    keep = -1;
    if (pid > 0) {
      ::kill(pid, SIGKILL);
      ::waitpid(pid, nullptr, 0);
    }
    pid = -1;
  }
};

void owner::start(int device) {
  int to[2], from[2];
  if (::pipe2(to, O_CLOEXEC) != 0) throw unsupported{"no pipe"};
  if (::pipe2(from, O_CLOEXEC) != 0) throw unsupported{"no pipe"};
  const std::string number = std::to_string(device);
  pid = ::fork();
  if (pid == 0) {
    ::dup2(to[0], STDIN_FILENO);
    ::dup2(from[1], STDOUT_FILENO);
    ::execl("/proc/self/exe", "hostwait", "probe", "--memory-owner", "--device", number.c_str(),
            static_cast<char*>(nullptr));
    ::_exit(127);
  }
  ::close(to[0]);
  ::close(from[1]);
  keep = to[1];
  std::size_t got = 0;
  pollfd waiting{from[0], POLLIN, 0};
  while (pid > 0 && got<sizeof handle&& ::poll(&waiting, 1, 20'000)> 0) {
    const ssize_t n = ::read(from[0], reinterpret_cast<char*>(&handle) + got, sizeof handle - got);
    if (n <= 0) break;
    got += static_cast<std::size_t>(n);
  }
  ::close(from[0]);
  if (got < sizeof handle) {
    end();
    throw unsupported{"a second process could not export memory"};
  }
}

void other_processes(catalogue& c) {
  static owner other;
  auto& handle = c.add("ipc/cuIpcGetMemHandle/1M", "handle for other processes", [](stage& s) {
    static CUipcMemHandle out;
    s.measured_other("cuIpcGetMemHandle", s.d.cuIpcGetMemHandle, &out, s.own.memory);
  });
  handle.prepare = [](stage& s) { s.use<row_cuMemAlloc_v2>(&s.own.memory, std::size_t{1} << 20); };
  const auto close = [](stage& s) {
    if (s.own.second) s.d.get<row_cuIpcCloseMemHandle>()(s.own.second);
    s.own.second = 0;
    other.end();
  };
  auto& open = c.add("ipc/cuIpcOpenMemHandle_v2/1M", "memory of a second process", [](stage& s) {
    s.measured<row_cuIpcOpenMemHandle_v2>(&s.own.second, other.handle,
                                          unsigned{CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS});
  });
  open.prepare = [](stage& s) { other.start(s.device); };
  open.cleanup = close;
  open.busy = {stream_kind::nonblocking};
  auto& shut = c.add("ipc/cuIpcCloseMemHandle/1M", "memory of a second process", [](stage& s) {
    if (s.measured<row_cuIpcCloseMemHandle>(s.own.second) == CUDA_SUCCESS) s.own.second = 0;
  });
  shut.prepare = [](stage& s) {
    other.start(s.device);
    s.use<row_cuIpcOpenMemHandle_v2>(&s.own.second, other.handle,
                                     unsigned{CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS});
  };
  shut.cleanup = close;
  shut.busy = {stream_kind::nonblocking};
}

}  // namespace

void add_mappings(catalogue& c) {
  virtual_memory(c);
  other_processes(c);
}

int own_memory(int device) {
  std::string why;
  driver* d = driver::load(why);
  CUcontext context = nullptr;
  CUdeviceptr memory = 0;
  CUipcMemHandle handle{};
  if (d == nullptr || d->cuIpcGetMemHandle == nullptr || d->cuInit(0) != CUDA_SUCCESS ||
      d->cuDevicePrimaryCtxRetain(&context, device) != CUDA_SUCCESS ||
      d->cuCtxSetCurrent(context) != CUDA_SUCCESS ||
      d->get<row_cuMemAlloc_v2>()(&memory, std::size_t{1} << 20) != CUDA_SUCCESS ||
      d->cuIpcGetMemHandle(&handle, memory) != CUDA_SUCCESS)
    return 1;
  if (::write(STDOUT_FILENO, &handle, sizeof handle) != sizeof handle) return 1;
  char end;
  while (::read(STDIN_FILENO, &end, 1) > 0) {
  }
  ::_exit(0);
}

}  // namespace hostwait::probe
