// SPDX-License-Identifier: Apache-2.0
// Copyright The hostwait authors
// Numbers found by search: sizes to the byte, depths of the queue.
#include "stage.hpp"

namespace hostwait::probe {

namespace {

constexpr std::uint64_t ms = 1'000'000;
constexpr std::size_t mib = 1 << 20;

// Whether the last of `count` calls behind a kernel of 30 ms took more than half of what was left.
bool last_waits(stage& s, unsigned count, const std::function<CUresult()>& call) {
  constexpr std::uint64_t kernel = 30 * ms;
  s.drain();
  s.keep_busy(s.nonblocking, kernel);
  const std::uint64_t begin = now_ns();
  bool waited = false;
  for (unsigned i = 0; i < count; ++i) {
    const std::uint64_t before = now_ns();
    s.need(call(), "the call");
    const std::uint64_t left = before - begin < kernel ? kernel - (before - begin) : 0;
    waited = now_ns() - before > left / 2 && left > kernel / 4;
  }
  s.drain();
  return waited;
}

CUresult upload(stage& s, std::size_t n) {
  return s.d.get<row_cuMemcpyHtoDAsync_v2>()(s.device_block(), s.pageable_block(), n,
                                             s.nonblocking);
}

// The largest size at which `waits` is false, in [low, high]; `low` must not wait.
template <class Waits>
limit largest_without_wait(limit found, std::size_t low, std::size_t high, const Waits& waits) {
  if (waits(low)) {
    found.note = "waits at " + std::to_string(low) + " already";
    return found;
  }
  if (!waits(high)) {
    found.note = "does not wait at " + std::to_string(high) + " either";
    return found;
  }
  while (high - low > 1) {
    const std::size_t middle = low + (high - low) / 2;
    (waits(middle) ? high : low) = middle;
  }
  found.value = low;
  return found;
}

experiment& search(catalogue& c, const std::string& id, const std::string& what,
                   std::function<void(stage&, limit)> find) {
  auto& e = c.add("limit/" + id, what, [find, id, what](stage& s) {
    limit l;
    l.id = "limit/" + id;
    l.what = what;
    find(s, l);
  });
  e.searches = true;
  e.idle = false;
  e.judged = false;
  e.busy = {stream_kind::none};
  e.prepare = [](stage& s) {
    s.device_block(), s.device_block(1);
    s.pageable_block(), s.pinned_block();
    s.use<row_cuEventCreate>(&s.own.event, unsigned{CU_EVENT_DISABLE_TIMING});
  };
  return e;
}

void sizes(catalogue& c) {
  search(c, "upload/single", "largest pageable upload that does not wait, one on a busy stream",
         [](stage& s, limit l) {
           l.unit = "bytes";
           s.report_limit(largest_without_wait(l, 4, 64 * mib, [&](std::size_t n) {
             return last_waits(s, 1, [&] { return upload(s, n); });
           }));
         })
      .quick = true;
  search(c, "upload/inline", "largest pageable upload of which three in a row do not wait",
         [](stage& s, limit l) {
           l.unit = "bytes";
           s.report_limit(largest_without_wait(l, 4, mib, [&](std::size_t n) {
             return last_waits(s, 3, [&] { return upload(s, n); });
           }));
         });
}

// Calls behind one kernel until one of them takes more than 5 ms, which is counted in.
limit count_until_wait(stage& s, limit l, unsigned most, const std::function<CUresult()>& call) {
  constexpr std::uint64_t kernel = 150 * ms;
  s.drain();
  s.keep_busy(s.nonblocking, kernel);
  const std::uint64_t begin = now_ns();
  l.unit = "th call waits";
  for (unsigned i = 1; i <= most; ++i) {
    const std::uint64_t before = now_ns();
    const CUresult r = call();
    const std::uint64_t after = now_ns();
    if (r != CUDA_SUCCESS) {
      l.note = s.d.name_of(r);
      break;
    }
    // Not a pause of the host, but a wait: to about the kernel's end.
    if (after - before > 5 * ms && after - begin > kernel * 9 / 10) {
      l.value = i;
      break;
    }
    if (after - begin > kernel * 9 / 10) {
      l.note = "the kernel ended after " + std::to_string(i) + " calls";
      break;
    }
  }
  if (l.value == 0 && l.note.empty()) l.note = "none of " + std::to_string(most) + " waited";
  s.drain();
  return l;
}

void make_graph(stage& s) {
  CUgraphNode node = nullptr;
  s.use_other("cuGraphCreate", s.d.cuGraphCreate, &s.own.graph, 0u);
  s.use_other("cuGraphAddEmptyNode", s.d.cuGraphAddEmptyNode, &node, s.own.graph, nullptr,
              std::size_t{0});
  s.use<row_cuGraphInstantiateWithFlags>(&s.own.exec, s.own.graph, 0ull);
}

void depths(catalogue& c) {
  for (std::size_t n : {std::size_t{4}, std::size_t{1024}, std::size_t{32} << 10,
                        std::size_t{64} << 10, (std::size_t{64} << 10) + 1, mib})
    search(c, "upload/repeated_" + std::to_string(n),
           "pageable uploads of " + std::to_string(n) + " bytes", [n](stage& s, limit l) {
             s.report_limit(count_until_wait(s, l, 5000, [&] { return upload(s, n); }));
           });
  struct call {
    const char* name;
    CUresult (*make)(stage&);
  };
  static const call calls[] = {
      {"cuLaunchKernel",
       [](stage& s) {
         return s.d.get<row_cuLaunchKernel>()(s.tiny, 1, 1, 1, 1, 1, 1, 0, s.nonblocking, nullptr,
                                              nullptr);
       }},
      {"cuEventRecord",
       [](stage& s) { return s.d.get<row_cuEventRecord>()(s.own.event, s.nonblocking); }},
      {"cuMemsetD8Async",
       [](stage& s) {
         return s.d.get<row_cuMemsetD8Async>()(s.device_block(), 0, 1024, s.nonblocking);
       }},
      {"cuMemcpyHtoDAsync_v2_pinned",
       [](stage& s) {
         return s.d.get<row_cuMemcpyHtoDAsync_v2>()(s.device_block(), s.pinned_block(), 1024,
                                                    s.nonblocking);
       }},
      {"cuMemcpyDtoDAsync_v2",
       [](stage& s) {
         return s.d.get<row_cuMemcpyDtoDAsync_v2>()(s.device_block(), s.device_block(1), 1024,
                                                    s.nonblocking);
       }},
      {"cuStreamWaitEvent",
       [](stage& s) { return s.d.get<row_cuStreamWaitEvent>()(s.nonblocking, s.own.event, 0); }},
      {"cuLaunchHostFunc", [](stage& s) {
         return s.d.get<row_cuLaunchHostFunc>()(
             s.nonblocking, [](void*) {}, nullptr);
       }}};
  for (const call& k : calls)
    search(c, std::string("queue/") + k.name, std::string(k.name) + " behind one kernel",
           [&k](stage& s, limit l) {
             s.report_limit(count_until_wait(s, l, 5000, [&] { return k.make(s); }));
           });
  search(c, "queue/cuGraphLaunch", "launches of a small graph behind one kernel",
         [](stage& s, limit l) {
           make_graph(s);
           s.report_limit(count_until_wait(s, l, 5000, [&] {
             return s.d.get<row_cuGraphLaunch>()(s.own.exec, s.nonblocking);
           }));
         });
}

}  // namespace

void add_limits(catalogue& c) {
  sizes(c);
  depths(c);
}

}  // namespace hostwait::probe
