// SPDX-License-Identifier: Apache-2.0
// Copyright The hostwait authors
// Who is held up by whom: one thread is inside a call that waits for the kernel, another makes a
// call that waits for nothing. A long stay there is the driver's lock, not the GPU.
#include <time.h>

#include <atomic>
#include <thread>

#include "kernels.hpp"
#include "stage.hpp"

namespace hostwait::probe {

namespace {

constexpr std::size_t mib = 1 << 20;

struct holder {
  const char* name;
  void (*prepare)(stage&);
  // Made on another thread while the kernel runs in the non-blocking stream.
  void (*make)(stage&);
};
const holder holders[] = {
    {"cuMemFree_v2", [](stage& s) { s.use<row_cuMemAlloc_v2>(&s.own.second, mib); },
     [](stage& s) {
       if (s.d.get<row_cuMemFree_v2>()(s.own.second) == CUDA_SUCCESS) s.own.second = 0;
     }},
    {"cuModuleLoadData", [](stage&) {},
     [](stage& s) { s.d.get<row_cuModuleLoadData>()(&s.own.module, plain_ptx); }},
    {"cuMemFreeHost", [](stage& s) { s.use<row_cuMemHostAlloc>(&s.own.host, mib, 0u); },
     [](stage& s) {
       if (s.d.get<row_cuMemFreeHost>()(s.own.host) == CUDA_SUCCESS) s.own.host = nullptr;
     }},
    {"cuMemcpyDtoHAsync_v2_pageable", [](stage& s) { s.device_block(), s.pageable_block(); },
     [](stage& s) {
       s.d.get<row_cuMemcpyDtoHAsync_v2>()(s.pageable_block(), s.device_block(), mib,
                                           s.nonblocking);
     }},
    {"cuMemcpyDtoHAsync_v2_full_queue", [](stage& s) { s.device_block(), s.pinned_block(); },
     [](stage& s) {
       for (int i = 0; i < 1100; ++i)
         s.d.get<row_cuMemcpyDtoHAsync_v2>()(s.pinned_block(), s.device_block(), 4, s.nonblocking);
     }},
    {"cuCtxSynchronize", [](stage&) {}, [](stage& s) { s.d.get<row_cuCtxSynchronize>()(); }},
    {"cuStreamSynchronize", [](stage&) {},
     [](stage& s) { s.d.get<row_cuStreamSynchronize>()(s.nonblocking); }}};

struct victim {
  const char* name;
  void (*prepare)(stage&);
  void (*make)(stage&);
};
void make_event(stage& s) {
  s.use<row_cuEventCreate>(&s.own.event, unsigned{CU_EVENT_DISABLE_TIMING});
  s.use<row_cuEventRecord>(s.own.event, s.other_nonblocking);
}
void make_graph(stage& s) {
  CUgraphNode node = nullptr;
  s.use_other("cuGraphCreate", s.d.cuGraphCreate, &s.own.graph, 0u);
  s.use_other("cuGraphAddEmptyNode", s.d.cuGraphAddEmptyNode, &node, s.own.graph, nullptr,
              std::size_t{0});
  s.use<row_cuGraphInstantiateWithFlags>(&s.own.exec, s.own.graph, 0ull);
  s.use<row_cuGraphLaunch>(s.own.exec, s.other_nonblocking);
}
const victim victims[] = {
    {"cuPointerGetAttributes", [](stage& s) { s.device_block(); },
     [](stage& s) {
       unsigned type = 0;
       CUpointer_attribute name = CU_POINTER_ATTRIBUTE_MEMORY_TYPE;
       void* value = &type;
       s.measured_other("cuPointerGetAttributes", s.d.cuPointerGetAttributes, 1u, &name, &value,
                        s.device_block());
     }},
    {"cuLaunchKernel", [](stage&) {},
     [](stage& s) {
       s.measured<row_cuLaunchKernel>(s.tiny, 1u, 1u, 1u, 1u, 1u, 1u, 0u, s.other_nonblocking,
                                      static_cast<void**>(nullptr), static_cast<void**>(nullptr));
     }},
    {"cuMemcpyHtoDAsync_v2", [](stage& s) { s.device_block(1), s.pinned_block(1); },
     [](stage& s) {
       s.measured<row_cuMemcpyHtoDAsync_v2>(s.device_block(1), s.pinned_block(1), mib,
                                            s.other_nonblocking);
     }},
    {"cuMemsetD8Async", [](stage& s) { s.device_block(1); },
     [](stage& s) {
       s.measured<row_cuMemsetD8Async>(s.device_block(1), static_cast<unsigned char>(0), mib,
                                       s.other_nonblocking);
     }},
    {"cuEventRecord", make_event,
     [](stage& s) { s.measured<row_cuEventRecord>(s.own.event, s.other_nonblocking); }},
    {"cuStreamWaitEvent", make_event,
     [](stage& s) { s.measured<row_cuStreamWaitEvent>(s.other_nonblocking, s.own.event, 0u); }},
    {"cuLaunchHostFunc", [](stage&) {},
     [](stage& s) {
       s.measured<row_cuLaunchHostFunc>(s.other_nonblocking, CUhostFn([](void*) {}),
                                        static_cast<void*>(nullptr));
     }},
    {"cuGraphLaunch", make_graph,
     [](stage& s) { s.measured<row_cuGraphLaunch>(s.own.exec, s.other_nonblocking); }},
    {"cuEventQuery", make_event, [](stage& s) { s.measured<row_cuEventQuery>(s.own.event); }},
    {"cuStreamQuery", [](stage&) {},
     [](stage& s) { s.measured<row_cuStreamQuery>(s.other_nonblocking); }},
    {"cuMemAlloc_v2", [](stage&) {},
     [](stage& s) { s.measured<row_cuMemAlloc_v2>(&s.own.memory, mib); }},
    {"cuMemAllocAsync", [](stage&) {},
     [](stage& s) { s.measured<row_cuMemAllocAsync>(&s.own.memory, mib, s.other_nonblocking); }},
    {"cuMemGetInfo_v2", [](stage&) {},
     [](stage& s) {
       static std::size_t free_bytes, total;
       s.measured_other("cuMemGetInfo_v2", s.d.cuMemGetInfo_v2, &free_bytes, &total);
     }}};

void pause_ms(long ms) {
  timespec t{0, ms * 1'000'000};
  ::nanosleep(&t, nullptr);
}

void beside(stage& s, const holder& h, const victim& v) {
  std::atomic<int> state{0};
  std::jthread other([&] {
    s.d.cuCtxSetCurrent(s.context);
    state = 1;
    h.make(s);
    state = 2;
  });
  while (state == 0) std::this_thread::yield();
  pause_ms(4);
  if (state == 2) throw unsupported{"the other thread did not stay in its call"};
  v.make(s);
  s.remark(state == 2 ? "the other call had ended at its return" : "the other call went on");
}

}  // namespace

void add_holders(catalogue& c) {
  for (const holder& h : holders)
    for (const victim& v : victims) {
      auto& e = c.add(std::string("held/") + v.name + "/beside_" + h.name,
                      std::string("while another thread is inside ") + h.name,
                      [&h, &v](stage& s) { beside(s, h, v); });
      e.prepare = [&h, &v](stage& s) {
        h.prepare(s);
        v.prepare(s);
      };
      e.busy = {stream_kind::nonblocking};
      e.idle = false;
      e.judged = false;
    }
}

}  // namespace hostwait::probe
