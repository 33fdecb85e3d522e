// SPDX-License-Identifier: Apache-2.0
// Copyright The hostwait authors
// Explicit waits and queries.
#include "stage.hpp"

namespace hostwait::probe {

namespace {

void make_event(stage& s, unsigned flags = CU_EVENT_DISABLE_TIMING) {
  s.use<row_cuEventCreate>(&s.own.event, flags);
}

void stream_waits(catalogue& c) {
  c.add("wait/cuStreamSynchronize/same", "wait for the busy stream", [](stage& s) {
     s.measured<row_cuStreamSynchronize>(s.busy_stream());
   }).quick = true;
  struct target {
    const char* name;
    CUstream (*of)(stage&);
  };
  // Nothing was put into these: where the verdict names that stream alone, there is nothing to wait
  // for, also while the legacy stream is busy.
  for (const target& t :
       {target{"other_blocking", [](stage& s) { return s.other_blocking; }},
        target{"other_nonblocking", [](stage& s) { return s.other_nonblocking; }}}) {
    auto of = t.of;
    c.add(std::string("wait/cuStreamSynchronize/") + t.name, "wait for an idle stream",
          [of](stage& s) {
            s.own_stream_is(stream_kind::none);
            s.measured<row_cuStreamSynchronize>(of(s));
          });
  }
  c.add("wait/cuStreamSynchronize/legacy", "wait for the legacy stream", [](stage& s) {
     s.measured<row_cuStreamSynchronize>(stage::legacy);
   }).quick = true;
  c.add("wait/cuStreamSynchronize/legacy_handle", "wait for CU_STREAM_LEGACY",
        [](stage& s) { s.measured<row_cuStreamSynchronize>(reinterpret_cast<CUstream>(1)); });
  auto& own = c.add("wait/cuStreamSynchronize/per_thread", "wait for CU_STREAM_PER_THREAD",
                    [](stage& s) { s.measured<row_cuStreamSynchronize>(stage::per_thread); });
  own.busy = {stream_kind::blocking, stream_kind::nonblocking, stream_kind::per_thread};
  auto& null = c.add("wait/cuStreamSynchronize_ptsz/null", "per-thread form, null handle",
                     [](stage& s) { s.measured<row_cuStreamSynchronize_ptsz>(stage::legacy); });
  null.busy = {stream_kind::blocking, stream_kind::nonblocking, stream_kind::per_thread};
  // The legacy stream's kernel is no work of the per-thread stream, which has none.
  auto& behind =
      c.add("wait/cuStreamSynchronize/per_thread_idle",
            "wait for the idle per-thread stream while the legacy stream is busy", [](stage& s) {
              s.own_stream_is(stream_kind::none);
              s.measured<row_cuStreamSynchronize>(stage::per_thread);
            });
  behind.busy = {stream_kind::legacy};
}

void event_waits(catalogue& c) {
  auto& after =
      c.add("wait/cuEventSynchronize/after", "event recorded behind the kernel", [](stage& s) {
        s.use<row_cuEventRecord>(s.own.event, s.busy_stream());
        s.event_recorded_on(s.busy_kind());
        s.measured<row_cuEventSynchronize>(s.own.event);
      });
  after.prepare = [](stage& s) { make_event(s); };
  after.quick = true;
  auto& sleeping = c.add("wait/cuEventSynchronize/blocking_sync",
                         "event with CU_EVENT_BLOCKING_SYNC behind the kernel", [](stage& s) {
                           s.use<row_cuEventRecord>(s.own.event, s.busy_stream());
                           s.event_recorded_on(s.busy_kind());
                           s.measured<row_cuEventSynchronize>(s.own.event);
                         });
  sleeping.prepare = [](stage& s) { make_event(s, CU_EVENT_BLOCKING_SYNC); };
  auto& before = c.add("wait/cuEventSynchronize/before", "event recorded before the kernel",
                       [](stage& s) { s.measured<row_cuEventSynchronize>(s.own.event); });
  before.prepare = [](stage& s) {
    make_event(s);
    s.use<row_cuEventRecord>(s.own.event, s.busy_stream());
  };
  auto& never = c.add("wait/cuEventSynchronize/never_recorded", "event that was never recorded",
                      [](stage& s) { s.measured<row_cuEventSynchronize>(s.own.event); });
  never.prepare = [](stage& s) { make_event(s); };
  auto& elsewhere = c.add("wait/cuEventSynchronize/idle_stream",
                          "event recorded in an idle non-blocking stream", [](stage& s) {
                            s.use<row_cuEventRecord>(s.own.event, s.other_nonblocking);
                            s.event_recorded_on(stream_kind::other_nonblocking);
                            s.measured<row_cuEventSynchronize>(s.own.event);
                          });
  elsewhere.prepare = [](stage& s) { make_event(s); };
}

void queries(catalogue& c) {
  c.add("query/cuStreamQuery/same", "query of the busy stream", [](stage& s) {
     s.measured<row_cuStreamQuery>(s.busy_stream());
   }).quick = true;
  c.add("query/cuStreamQuery/legacy", "query of the legacy stream",
        [](stage& s) { s.measured<row_cuStreamQuery>(stage::legacy); });
  auto& event =
      c.add("query/cuEventQuery/behind", "query of an event behind the kernel", [](stage& s) {
        s.use<row_cuEventRecord>(s.own.event, s.busy_stream());
        s.measured<row_cuEventQuery>(s.own.event);
      });
  event.prepare = [](stage& s) { make_event(s); };
  for (bool second : {false, true}) {
    auto& elapsed =
        c.add(second ? "query/cuEventElapsedTime_v2/done" : "query/cuEventElapsedTime/done",
              "elapsed time of an event that is done", [second](stage& s) {
                static float milliseconds;
                if (second)
                  s.measured<row_cuEventElapsedTime_v2>(&milliseconds, s.own.event, s.own.event);
                else
                  s.measured<row_cuEventElapsedTime>(&milliseconds, s.own.event, s.own.event);
              });
    elapsed.prepare = [](stage& s) {
      make_event(s, CU_EVENT_DEFAULT);
      s.use<row_cuEventRecord>(s.own.event, stage::legacy);
    };
  }
  auto& attributes = c.add("query/cuPointerGetAttributes/device",
                           "the query that hostwait itself makes", [](stage& s) {
                             unsigned type = 0;
                             CUpointer_attribute name = CU_POINTER_ATTRIBUTE_MEMORY_TYPE;
                             void* value = &type;
                             s.measured_other("cuPointerGetAttributes", s.d.cuPointerGetAttributes,
                                              1u, &name, &value, s.device_block());
                           });
  attributes.prepare = [](stage& s) { s.device_block(); };
  attributes.quick = true;
  c.add("query/cuStreamIsCapturing/same", "is the busy stream capturing?", [](stage& s) {
    CUstreamCaptureStatus status;
    if (s.busy_kind() == stream_kind::legacy) {
      // Of the legacy stream it answers with an error while any capture is open.
      s.measured_other("cuStreamIsCapturing", s.d.cuStreamIsCapturing, s.other_nonblocking,
                       &status);
      return;
    }
    s.measured_other("cuStreamIsCapturing", s.d.cuStreamIsCapturing, s.busy_stream(), &status);
  });
  c.add("query/cuMemGetInfo_v2/-", "free memory", [](stage& s) {
    static std::size_t free_bytes, total;
    s.measured_other("cuMemGetInfo_v2", s.d.cuMemGetInfo_v2, &free_bytes, &total);
  });
}

}  // namespace

void add_waits(catalogue& c) {
  c.add("wait/cuCtxSynchronize/-", "wait for the context", [](stage& s) {
     s.measured<row_cuCtxSynchronize>();
   }).quick = true;
  c.add("wait/cuCtxSynchronize_v2/-", "wait for a context by handle", [](stage& s) {
     s.measured<row_cuCtxSynchronize_v2>(s.context);
   }).quick = true;
  c.add("wait/cuFlushGPUDirectRDMAWrites/-", "flush of remote writes", [](stage& s) {
    s.measured<row_cuFlushGPUDirectRDMAWrites>(CU_FLUSH_GPU_DIRECT_RDMA_WRITES_TARGET_CURRENT_CTX,
                                               CU_FLUSH_GPU_DIRECT_RDMA_WRITES_TO_OWNER);
  });
  stream_waits(c);
  event_waits(c);
  queries(c);
}

}  // namespace hostwait::probe
