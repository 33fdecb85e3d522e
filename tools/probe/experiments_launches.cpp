// SPDX-License-Identifier: Apache-2.0
// Copyright The hostwait authors
// Enqueue calls on a queue that is known to be shallow: launches, events, host functions, streams.
#include "stage.hpp"

namespace hostwait::probe {

namespace {

void make_event(stage& s) {
  s.use<row_cuEventCreate>(&s.own.event, unsigned{CU_EVENT_DISABLE_TIMING});
}

template <row_id Row>
void launch_on(stage& s, CUstream on) {
  s.measured<Row>(s.tiny, 1u, 1u, 1u, 1u, 1u, 1u, 0u, on, static_cast<void**>(nullptr),
                  static_cast<void**>(nullptr));
}

void launches(catalogue& c) {
  auto& same = c.add("launch/cuLaunchKernel/tiny/same", "a small kernel behind the busy one",
                     [](stage& s) { launch_on<row_cuLaunchKernel>(s, s.busy_stream()); });
  same.quick = true;
  c.add("launch/cuLaunchKernel/tiny/other", "a small kernel on an idle stream",
        [](stage& s) { launch_on<row_cuLaunchKernel>(s, s.other_nonblocking); });
  c.add("launch/cuLaunchKernel/tiny/legacy", "a small kernel on the legacy stream",
        [](stage& s) { launch_on<row_cuLaunchKernel>(s, stage::legacy); });
  c.add("launch/cuLaunchKernel_ptsz/tiny/null", "per-thread form, null handle",
        [](stage& s) { launch_on<row_cuLaunchKernel_ptsz>(s, stage::legacy); });
  c.add("launch/cuLaunchCooperativeKernel/tiny/other", "cooperative launch", [](stage& s) {
    s.measured<row_cuLaunchCooperativeKernel>(s.tiny, 1u, 1u, 1u, 1u, 1u, 1u, 0u,
                                              s.other_nonblocking, static_cast<void**>(nullptr));
  });
  c.add("launch/cuLaunchKernelEx/tiny/other", "launch with a configuration", [](stage& s) {
    CUlaunchConfig config{};
    config.gridDimX = config.gridDimY = config.gridDimZ = 1;
    config.blockDimX = config.blockDimY = config.blockDimZ = 1;
    config.hStream = s.other_nonblocking;
    s.measured<row_cuLaunchKernelEx>(&config, s.tiny, static_cast<void**>(nullptr),
                                     static_cast<void**>(nullptr));
  });
  const std::pair<std::string, std::string> blocking = {"CUDA_LAUNCH_BLOCKING", "1"};
  auto& launch = c.add("launch/cuLaunchKernel/launch_blocking/same", "CUDA_LAUNCH_BLOCKING=1",
                       [](stage& s) { launch_on<row_cuLaunchKernel>(s, s.busy_stream()); });
  auto& memset =
      c.add("launch/cuMemsetD8Async/launch_blocking/same", "CUDA_LAUNCH_BLOCKING=1", [](stage& s) {
        s.measured<row_cuMemsetD8Async>(s.device_block(), static_cast<unsigned char>(0),
                                        std::size_t{1024}, s.busy_stream());
      });
  memset.prepare = [](stage& s) { s.device_block(); };
  auto& copy = c.add("launch/cuMemcpyHtoDAsync_v2/launch_blocking/same",
                     "CUDA_LAUNCH_BLOCKING=1, pinned", [](stage& s) {
                       s.measured<row_cuMemcpyHtoDAsync_v2>(s.device_block(), s.pinned_block(),
                                                            std::size_t{1024}, s.busy_stream());
                     });
  copy.prepare = [](stage& s) { s.device_block(), s.pinned_block(); };
  auto& record =
      c.add("launch/cuEventRecord/launch_blocking/same", "CUDA_LAUNCH_BLOCKING=1",
            [](stage& s) { s.measured<row_cuEventRecord>(s.own.event, s.busy_stream()); });
  record.prepare = make_event;
  for (experiment* e : {&launch, &memset, &copy, &record}) {
    e->fresh = true;
    e->environment = {blocking};
    e->busy = {stream_kind::nonblocking};
    // The kernel's own launch waits under this setting: it is put behind a host function instead.
    e->occupy = [](stage& s, std::uint64_t ns) { s.keep_busy_by_host(s.busy_stream(), ns); };
  }
}

void events(catalogue& c) {
  c.add("enqueue/cuEventRecord/-/same", "record behind the kernel", [](stage& s) {
     s.measured<row_cuEventRecord>(s.own.event, s.busy_stream());
   }).prepare = make_event;
  c.add("enqueue/cuEventRecordWithFlags/-/same", "record behind the kernel", [](stage& s) {
     s.measured<row_cuEventRecordWithFlags>(s.own.event, s.busy_stream(), 0u);
   }).prepare = make_event;
  auto& wait = c.add("enqueue/cuStreamWaitEvent/-/other", "an idle stream waits for the kernel",
                     [](stage& s) {
                       s.use<row_cuEventRecord>(s.own.event, s.busy_stream());
                       s.measured<row_cuStreamWaitEvent>(s.other_nonblocking, s.own.event, 0u);
                     });
  wait.prepare = make_event;
  wait.quick = true;
  c.add("enqueue/cuLaunchHostFunc/-/same", "a host function behind the kernel", [](stage& s) {
    s.measured<row_cuLaunchHostFunc>(s.busy_stream(), CUhostFn([](void*) {}),
                                     static_cast<void*>(nullptr));
  });
  c.add("enqueue/cuStreamAddCallback/-/same", "a callback behind the kernel", [](stage& s) {
    s.measured<row_cuStreamAddCallback>(s.busy_stream(),
                                        CUstreamCallback([](CUstream, CUresult, void*) {}),
                                        static_cast<void*>(nullptr), 0u);
  });
  c.add("enqueue/cuStreamWriteValue32_v2/-/same", "a value behind the kernel", [](stage& s) {
     s.measured<row_cuStreamWriteValue32_v2>(s.busy_stream(), s.device_block(), cuuint32_t{1}, 0u);
   }).prepare = [](stage& s) { s.device_block(); };
  c.add("enqueue/cuStreamBatchMemOp_v2/-/same", "a batch of values behind the kernel",
        [](stage& s) {
          CUstreamBatchMemOpParams op{};
          op.writeValue.operation = CU_STREAM_MEM_OP_WRITE_VALUE_32;
          op.writeValue.address = s.device_block();
          op.writeValue.value = 1;
          s.measured<row_cuStreamBatchMemOp_v2>(s.busy_stream(), 1u, &op, 0u);
        })
      .prepare = [](stage& s) { s.device_block(); };
  auto& sleeping =
      c.add("wait/cuStreamSynchronize/host_function", "a host function sleeps in the stream",
            [](stage& s) { s.measured<row_cuStreamSynchronize>(s.busy_stream()); });
  sleeping.occupy = [](stage& s, std::uint64_t ns) { s.keep_busy_by_host(s.busy_stream(), ns); };
  sleeping.busy = {stream_kind::nonblocking};
}

void handles(catalogue& c) {
  for (bool blocking : {true, false})
    c.add(std::string("handle/cuStreamCreate/") + (blocking ? "blocking" : "nonblocking"),
          "a stream", [blocking](stage& s) {
            s.measured_other("cuStreamCreate", s.d.cuStreamCreate, &s.own.stream,
                             unsigned(blocking ? CU_STREAM_DEFAULT : CU_STREAM_NON_BLOCKING));
          });
  auto& idle = c.add("handle/cuStreamDestroy_v2/idle", "an idle stream", [](stage& s) {
    if (s.measured_other("cuStreamDestroy_v2", s.d.cuStreamDestroy_v2, s.own.stream) ==
        CUDA_SUCCESS)
      s.own.stream = nullptr;
  });
  idle.prepare = [](stage& s) {
    s.use_other("cuStreamCreate", s.d.cuStreamCreate, &s.own.stream,
                unsigned{CU_STREAM_NON_BLOCKING});
  };
  auto& busy =
      c.add("handle/cuStreamDestroy_v2/busy", "the stream of the running kernel", [](stage& s) {
        if (s.measured_other("cuStreamDestroy_v2", s.d.cuStreamDestroy_v2, s.own.stream) ==
            CUDA_SUCCESS)
          s.own.stream = nullptr;
      });
  busy.prepare = idle.prepare;
  busy.occupy = [](stage& s, std::uint64_t ns) { s.keep_busy(s.own.stream, ns); };
  busy.busy = {stream_kind::nonblocking};
  c.add("handle/cuEventCreate/-", "an event", [](stage& s) {
    s.measured<row_cuEventCreate>(&s.own.event, unsigned{CU_EVENT_DISABLE_TIMING});
  });
  auto& pending =
      c.add("handle/cuEventDestroy_v2/pending", "an event behind the kernel", [](stage& s) {
        s.use<row_cuEventRecord>(s.own.event, s.busy_stream());
        if (s.measured_other("cuEventDestroy_v2", s.d.cuEventDestroy_v2, s.own.event) ==
            CUDA_SUCCESS)
          s.own.event = nullptr;
      });
  pending.prepare = make_event;
}

}  // namespace

void add_launches(catalogue& c) {
  launches(c);
  events(c);
  handles(c);
}

}  // namespace hostwait::probe
