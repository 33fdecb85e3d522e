// SPDX-License-Identifier: Apache-2.0
// Copyright The hostwait authors
// Flat copies, by direction, memory and size.
#include "stage.hpp"

namespace hostwait::probe {

namespace {

enum class memory { pageable, pinned, registered, managed, device, pool };
constexpr memory host_memory[] = {memory::pageable, memory::pinned, memory::registered,
                                  memory::managed};

const char* name_of(memory m) {
  switch (m) {
    case memory::pageable:
      return "pageable";
    case memory::pinned:
      return "pinned";
    case memory::registered:
      return "registered";
    case memory::managed:
      return "managed";
    case memory::device:
      return "device";
    case memory::pool:
      return "pool";
  }
  return "";
}

// One of the stage's blocks; the second where both ends are of one kind.
std::uint64_t at(stage& s, memory m, unsigned which = 0) {
  const auto number = [](void* p) { return reinterpret_cast<std::uint64_t>(p); };
  switch (m) {
    case memory::pageable:
      return number(s.pageable_block(which));
    case memory::pinned:
      return number(s.pinned_block(which));
    case memory::registered:
      return number(which ? s.pinned_block(1) : s.registered_block());
    case memory::managed:
      return s.managed_block(which);
    case memory::device:
      return s.device_block(which);
    case memory::pool:
      return s.pool_block();
  }
  return 0;
}
void* host(stage& s, memory m, unsigned which = 0) {
  return reinterpret_cast<void*>(at(s, m, which));
}

std::string size_name(std::size_t bytes) {
  if (bytes >= 1 << 20 && bytes % (1 << 20) == 0) return std::to_string(bytes >> 20) + "M";
  if (bytes >= 1024 && bytes % 1024 == 0) return std::to_string(bytes >> 10) + "K";
  return std::to_string(bytes);
}

std::string id_of(const char* symbol, memory m, std::size_t n, const char* where) {
  return std::string("copy/") + symbol + "/" + name_of(m) + "/" + size_name(n) + "/" + where;
}

// Both blocks are there before the kernel is: making them is no part of the call.
std::function<void(stage&)> ready(memory a, memory b) {
  return [a, b](stage& s) { at(s, a), at(s, b, a == b ? 1 : 0); };
}

enum class where { same, other, legacy };
CUstream stream_of(stage& s, where w) {
  return w == where::same    ? s.busy_stream()
         : w == where::other ? s.other_nonblocking
                             : stage::legacy;
}
const char* name_of(where w) {
  return w == where::same ? "same" : w == where::other ? "other" : "legacy";
}

void waiting_by_name(catalogue& c, std::size_t n, bool quick) {
  for (memory m : host_memory) {
    auto& up =
        c.add(id_of("cuMemcpyHtoD_v2", m, n, "-"), "upload that waits by name",
              [=](stage& s) { s.measured<row_cuMemcpyHtoD_v2>(s.device_block(), host(s, m), n); });
    up.prepare = ready(m, memory::device);
    up.quick = quick;
    auto& down =
        c.add(id_of("cuMemcpyDtoH_v2", m, n, "-"), "download that waits by name",
              [=](stage& s) { s.measured<row_cuMemcpyDtoH_v2>(host(s, m), s.device_block(), n); });
    down.prepare = ready(m, memory::device);
    down.quick = quick;
  }
}

void asynchronous(catalogue& c, std::size_t n, bool quick, bool elsewhere) {
  std::vector<where> places = {where::same};
  if (elsewhere) places.push_back(where::other);
  for (memory m : host_memory)
    for (where w : places) {
      auto& up = c.add(
          id_of("cuMemcpyHtoDAsync_v2", m, n, name_of(w)), "asynchronous upload", [=](stage& s) {
            s.measured<row_cuMemcpyHtoDAsync_v2>(s.device_block(), host(s, m), n, stream_of(s, w));
          });
      up.prepare = ready(m, memory::device);
      up.quick = quick && w == where::same;
      auto& down = c.add(
          id_of("cuMemcpyDtoHAsync_v2", m, n, name_of(w)), "asynchronous download", [=](stage& s) {
            s.measured<row_cuMemcpyDtoHAsync_v2>(host(s, m), s.device_block(), n, stream_of(s, w));
          });
      down.prepare = ready(m, memory::device);
      down.quick = quick && w == where::same;
    }
}

// Both ends by unified address: every pair of kinds.
void unified(catalogue& c) {
  constexpr memory kinds[] = {memory::pageable, memory::pinned, memory::managed, memory::device,
                              memory::pool};
  constexpr std::size_t n = 1 << 20;
  for (memory from : kinds)
    for (memory to : kinds) {
      const std::string pair = std::string(name_of(from)) + ">" + name_of(to);
      const unsigned second = from == to && to != memory::pool ? 1 : 0;
      const std::size_t offset = from == to && to == memory::pool ? 2 * n : 0;
      auto& sync = c.add(
          "copy/cuMemcpy/" + pair + "/1M/-", "unified addresses, waits by name",
          [=](stage& s) { s.measured<row_cuMemcpy>(at(s, to, second) + offset, at(s, from), n); });
      sync.prepare = ready(from, to);
      auto& async = c.add("copy/cuMemcpyAsync/" + pair + "/1M/same",
                          "unified addresses, asynchronous", [=](stage& s) {
                            s.measured<row_cuMemcpyAsync>(at(s, to, second) + offset, at(s, from),
                                                          n, s.busy_stream());
                          });
      async.prepare = ready(from, to);
    }
}

void device_to_device(catalogue& c) {
  for (std::size_t n : {std::size_t{4}, std::size_t{1} << 20, std::size_t{64} << 20}) {
    auto& sync = c.add(
        "copy/cuMemcpyDtoD_v2/device/" + size_name(n) + "/-", "device to device, waits by name",
        [=](stage& s) { s.measured<row_cuMemcpyDtoD_v2>(s.device_block(), s.device_block(1), n); });
    sync.prepare = ready(memory::device, memory::device);
    sync.quick = n == 1 << 20;
    auto& async = c.add("copy/cuMemcpyDtoDAsync_v2/device/" + size_name(n) + "/same",
                        "device to device, asynchronous", [=](stage& s) {
                          s.measured<row_cuMemcpyDtoDAsync_v2>(s.device_block(), s.device_block(1),
                                                               n, s.busy_stream());
                        });
    async.prepare = ready(memory::device, memory::device);
    async.quick = n == 1 << 20;
  }
  // Managed or pinned memory behind a device pointer.
  for (memory m : {memory::managed, memory::pinned}) {
    constexpr std::size_t n = 1 << 20;
    auto& sync =
        c.add(id_of("cuMemcpyDtoD_v2", m, n, "-"), "device pointer of other memory",
              [=](stage& s) { s.measured<row_cuMemcpyDtoD_v2>(s.device_block(), at(s, m), n); });
    sync.prepare = ready(m, memory::device);
    auto& async = c.add(id_of("cuMemcpyDtoDAsync_v2", m, n, "same"),
                        "device pointer of other memory", [=](stage& s) {
                          s.measured<row_cuMemcpyDtoDAsync_v2>(s.device_block(), at(s, m), n,
                                                               s.busy_stream());
                        });
    async.prepare = ready(m, memory::device);
    auto& back =
        c.add(id_of("cuMemcpyDtoD_v2", m, n, "to"), "device pointer of other memory",
              [=](stage& s) { s.measured<row_cuMemcpyDtoD_v2>(at(s, m), s.device_block(), n); });
    back.prepare = ready(m, memory::device);
  }
}

void zero_bytes(catalogue& c) {
  auto& down = c.add("copy/cuMemcpyDtoH_v2/pageable/0/-", "zero bytes", [](stage& s) {
    s.measured<row_cuMemcpyDtoH_v2>(host(s, memory::pageable), s.device_block(), std::size_t{0});
  });
  down.prepare = ready(memory::pageable, memory::device);
  auto& async = c.add("copy/cuMemcpyDtoHAsync_v2/pageable/0/same", "zero bytes", [](stage& s) {
    s.measured<row_cuMemcpyDtoHAsync_v2>(host(s, memory::pageable), s.device_block(),
                                         std::size_t{0}, s.busy_stream());
  });
  async.prepare = ready(memory::pageable, memory::device);
  auto& up = c.add("copy/cuMemcpyHtoD_v2/pageable/0/-", "zero bytes", [](stage& s) {
    s.measured<row_cuMemcpyHtoD_v2>(s.device_block(), host(s, memory::pageable), std::size_t{0});
  });
  up.prepare = ready(memory::pageable, memory::device);
}

// The forms whose null stream is the calling thread's.
void per_thread_forms(catalogue& c) {
  constexpr std::size_t n = 1 << 20;
  auto& up = c.add("copy/cuMemcpyHtoD_v2_ptds/pageable/1M/-", "per-thread form", [=](stage& s) {
    s.measured<row_cuMemcpyHtoD_v2_ptds>(s.device_block(), host(s, memory::pageable), n);
  });
  up.prepare = ready(memory::pageable, memory::device);
  auto& down = c.add("copy/cuMemcpyDtoH_v2_ptds/pinned/1M/-", "per-thread form", [=](stage& s) {
    s.measured<row_cuMemcpyDtoH_v2_ptds>(host(s, memory::pinned), s.device_block(), n);
  });
  down.prepare = ready(memory::pinned, memory::device);
  down.quick = true;
  auto& async = c.add("copy/cuMemcpyDtoHAsync_v2_ptsz/pageable/1M/null",
                      "per-thread form, null handle", [=](stage& s) {
                        s.measured<row_cuMemcpyDtoHAsync_v2_ptsz>(
                            host(s, memory::pageable), s.device_block(), n, stage::legacy);
                      });
  async.prepare = ready(memory::pageable, memory::device);
  for (std::size_t size : {std::size_t{64} << 10, std::size_t{1} << 20}) {
    auto& legacy = c.add(id_of("cuMemcpyHtoDAsync_v2", memory::pageable, size, "legacy"),
                         "asynchronous upload on the legacy stream", [=](stage& s) {
                           s.measured<row_cuMemcpyHtoDAsync_v2>(
                               s.device_block(), host(s, memory::pageable), size, stage::legacy);
                         });
    legacy.prepare = ready(memory::pageable, memory::device);
  }
  auto& to_legacy = c.add(id_of("cuMemcpyDtoHAsync_v2", memory::pageable, n, "legacy"),
                          "asynchronous download on the legacy stream", [=](stage& s) {
                            s.measured<row_cuMemcpyDtoHAsync_v2>(
                                host(s, memory::pageable), s.device_block(), n, stage::legacy);
                          });
  to_legacy.prepare = ready(memory::pageable, memory::device);
  to_legacy.quick = true;
}

// Ranges that are not wholly what their first byte is.
void odd_ranges(catalogue& c) {
  auto& untouched =
      c.add("copy/cuMemcpyDtoHAsync_v2/untouched/1M/same",
            "download into pages that were never touched", [](stage& s) {
              s.measured<row_cuMemcpyDtoHAsync_v2>(s.own.page, s.device_block(),
                                                   std::size_t{1} << 20, s.busy_stream());
            });
  untouched.prepare = [](stage& s) {
    s.device_block();
    if (::posix_memalign(&s.own.page, 2 << 20, 4 << 20) != 0) throw unsupported{"no host memory"};
  };
  auto& combined =
      c.add("copy/cuMemcpyHtoD_v2/write_combined/1M/-", "upload from write-combined memory",
            [](stage& s) {
              s.measured<row_cuMemcpyHtoD_v2>(s.device_block(), s.own.host, std::size_t{1} << 20);
            });
  combined.prepare = [](stage& s) {
    s.device_block();
    s.use<row_cuMemHostAlloc>(&s.own.host, std::size_t{1} << 20,
                              unsigned{CU_MEMHOSTALLOC_WRITECOMBINED});
  };
  // The attribute makes copies and memsets without Async in their names wait (documented).
  for (bool async : {false, true}) {
    auto& marked =
        c.add(std::string("copy/") + (async ? "cuMemcpyDtoDAsync_v2" : "cuMemcpyDtoD_v2") +
                  "/sync_memops/1M/" + (async ? "same" : "-"),
              "destination with CU_POINTER_ATTRIBUTE_SYNC_MEMOPS", [async](stage& s) {
                constexpr std::size_t n = 1 << 20;
                if (async)
                  s.measured<row_cuMemcpyDtoDAsync_v2>(s.own.memory, s.device_block(), n,
                                                       s.busy_stream());
                else
                  s.measured<row_cuMemcpyDtoD_v2>(s.own.memory, s.device_block(), n);
              });
    marked.prepare = [](stage& s) {
      s.device_block();
      s.use<row_cuMemAlloc_v2>(&s.own.memory, std::size_t{1} << 20);
      const unsigned on = 1;
      s.use<row_cuPointerSetAttribute>(&on, CU_POINTER_ATTRIBUTE_SYNC_MEMOPS, s.own.memory);
    };
  }
}

}  // namespace

void add_copies(catalogue& c) {
  for (std::size_t n : {std::size_t{4}, std::size_t{64} << 10, std::size_t{65} << 10,
                        std::size_t{1} << 20, std::size_t{4} << 20})
    waiting_by_name(c, n, n == 4 || n == 1 << 20);
  for (std::size_t n : {std::size_t{4}, std::size_t{1024}, std::size_t{64} << 10,
                        (std::size_t{64} << 10) + 1, std::size_t{1} << 20, std::size_t{2} << 20,
                        (std::size_t{2} << 20) + 1, std::size_t{4} << 20})
    asynchronous(c, n, n == 4 || n == 4 << 20, n == 4 || n == 1 << 20 || n == 4 << 20);
  unified(c);
  device_to_device(c);
  zero_bytes(c);
  per_thread_forms(c);
  odd_ranges(c);
}

}  // namespace hostwait::probe
