// SPDX-License-Identifier: Apache-2.0
// Copyright The hostwait authors
// What the CUDA documents leave open and the exchange library relies on, asked of a real GPU. Each
// finding is one JSON line; a statement that the library is built on (`relied.…`) makes the status
// 1 when it does not hold.
//
//   gpu_probes              all but the last
//   gpu_probes destroyed    uses a destroyed stream handle: may crash, hence apart
#include <cstring>
#include <functional>
#include <thread>

#include "cai/support/driver_api.hpp"

namespace {

int broken = 0;

void relied(const std::string& what, bool holds) {
  gpu::answer("relied." + what, holds ? "holds" : "does not hold");
  broken += !holds;
}

constexpr const char* ptx = R"(.version 6.4
.target sm_75
.address_size 64
.visible .entry spin(.param .u64 ns) {
  .reg .pred %p; .reg .u64 %d<4>;
  ld.param.u64 %d0, [ns]; mov.u64 %d1, %globaltimer;
again:
  mov.u64 %d2, %globaltimer; sub.u64 %d3, %d2, %d1; setp.lt.u64 %p, %d3, %d0; @%p bra again;
  ret;
})";

void spin(CUstream stream, double milliseconds) {
  static CUfunction kernel = nullptr;
  if (kernel == nullptr) {
    CUmodule module;
    MUST(CU(cuModuleLoadData)(&module, ptx));
    MUST(CU(cuModuleGetFunction)(&kernel, module, "spin"));
  }
  uint64_t ns = static_cast<uint64_t>(milliseconds * 1e6);
  void* parameters[] = {&ns};
  MUST(CU(cuLaunchKernel)(kernel, 1, 1, 1, 1, 1, 1, 0, stream, parameters, nullptr));
}

bool finished(CUstream stream) {
  return CU(cuStreamQuery)(stream) == CUDA_SUCCESS;
}

void order(CUstream first, CUstream then) {
  static const CUevent event = gpu::new_event();
  MUST(CU(cuEventRecord)(event, first));
  MUST(CU(cuStreamWaitEvent)(then, event, 0));
}

// Probe 2: what a record on the legacy stream covers.
void legacy_join(CUcontext context) {
  const CUstream consumer = gpu::new_stream(), free = gpu::new_stream();
  const CUstream blocking = gpu::new_stream(CU_STREAM_DEFAULT);
  spin(consumer, 0.01);  // loads the kernel
  gpu::synchronize_all();
  const auto covers = [&](CUstream producer) {
    spin(producer, 20);
    order(CU_STREAM_LEGACY, consumer);
    const bool waits = !finished(consumer);
    gpu::synchronize_all();
    return waits;
  };
  relied("legacy_join_covers_blocking_streams", covers(blocking));
  const bool covers_free = covers(free);
  gpu::answer("legacy_join_covers_non_blocking_streams", covers_free ? "yes" : "no");
  bool covers_thread = false;
  std::thread([&] {
    MUST(CU(cuCtxSetCurrent)(context));
    spin(CU_STREAM_PER_THREAD, 20);
  }).join();
  order(CU_STREAM_LEGACY, consumer);
  covers_thread = !finished(consumer);
  gpu::synchronize_all();
  relied("legacy_join_covers_per_thread_streams_of_other_threads", covers_thread);

  // The price: does the record hold back later work of blocking streams that are unrelated?
  const CUstream other = gpu::new_stream(CU_STREAM_DEFAULT);
  spin(blocking, 20);
  order(CU_STREAM_LEGACY, consumer);
  spin(other, 0.01);
  const auto begin = gpu::clock::now();
  while (!finished(other) && gpu::microseconds_since(begin) < 10000) {
  }
  gpu::answer("legacy_join_delays_later_blocking_work", finished(other) ? "no" : "yes");
  gpu::synchronize_all();
}

struct call {
  const char* name;
  std::function<CUresult()> make;
};

CUstreamCaptureStatus status_of(CUstream stream) {
  CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_NONE;
  CU(cuStreamIsCapturing)(stream, &status);
  return status;
}

// Probe 3: which calls another capture forbids, on the capturing thread and on another one.
void calls_during_capture(CUcontext context) {
  const CUstream captured = gpu::new_stream(), other = gpu::new_stream();
  const CUevent event = gpu::new_event();
  const CUdeviceptr memory = gpu::new_memory(64);
  CUevent made = nullptr;
  CUcontext found = nullptr;
  CUstreamCaptureStatus status;
  unsigned type = 0, flags = 0;
  int attribute = CU_POINTER_ATTRIBUTE_MEMORY_TYPE;
  void* data[] = {&type};
  MUST(CU(cuEventRecord)(event, other));
  gpu::synchronize_all();
  const call calls[] = {
      {"event_create", [&] { return CU(cuEventCreate)(&made, CU_EVENT_DISABLE_TIMING); }},
      {"event_query", [&] { return CU(cuEventQuery)(event); }},
      {"event_synchronize", [&] { return CU(cuEventSynchronize)(event); }},
      {"stream_query", [&] { return CU(cuStreamQuery)(other); }},
      {"record_elsewhere", [&] { return CU(cuEventRecord)(event, other); }},
      {"wait_elsewhere", [&] { return CU(cuStreamWaitEvent)(other, event, 0); }},
      {"pointer_attributes",
       [&] {
         return CU(cuPointerGetAttributes)(1, reinterpret_cast<CUpointer_attribute*>(&attribute),
                                           data, memory);
       }},
      {"context_push_pop",
       [&] {
         const CUresult result = CU(cuCtxPushCurrent)(context);
         CU(cuCtxPopCurrent)(&found);
         return result;
       }},
      {"stream_get_ctx", [&] { return CU(cuStreamGetCtx)(captured, &found); }},
      {"stream_get_flags", [&] { return CU(cuStreamGetFlags)(captured, &flags); }},
      {"capture_query_legacy", [&] { return CU(cuStreamIsCapturing)(CU_STREAM_LEGACY, &status); }},
      {"capture_query_per_thread",
       [&] { return CU(cuStreamIsCapturing)(CU_STREAM_PER_THREAD, &status); }},
  };
  const std::pair<const char*, CUstreamCaptureMode> modes[] = {
      {"global", CU_STREAM_CAPTURE_MODE_GLOBAL},
      {"thread_local", CU_STREAM_CAPTURE_MODE_THREAD_LOCAL},
      {"relaxed", CU_STREAM_CAPTURE_MODE_RELAXED}};
  // The calls that the library makes unguarded, and those that it makes in relaxed mode.
  const auto is_one_of = [](const char* name, std::initializer_list<const char*> names) {
    for (const char* n : names) {
      if (strcmp(n, name) == 0) return true;
    }
    return false;
  };
  for (const auto& [mode_name, mode] : modes) {
    for (const bool same_thread : {true, false}) {
      for (const bool guarded : {false, true}) {
        for (const call& c : calls) {
          MUST(CU(cuStreamBeginCapture)(captured, mode));
          CUresult result = CUDA_SUCCESS;
          const auto make = [&] {
            CUstreamCaptureMode relaxed = CU_STREAM_CAPTURE_MODE_RELAXED;
            if (guarded) MUST(CU(cuThreadExchangeStreamCaptureMode)(&relaxed));
            result = c.make();
            if (guarded) MUST(CU(cuThreadExchangeStreamCaptureMode)(&relaxed));
          };
          if (same_thread) {
            make();
          } else {
            std::thread([&] {
              MUST(CU(cuCtxSetCurrent)(context));
              make();
            }).join();
          }
          const bool survives = status_of(captured) == CU_STREAM_CAPTURE_STATUS_ACTIVE;
          CUgraph graph = nullptr;
          CU(cuStreamEndCapture)(captured, &graph);
          if (graph != nullptr) CU(cuGraphDestroy)(graph);
          const std::string name = std::string("during_capture.") + mode_name +
                                   (same_thread ? ".same_thread." : ".other_thread.") +
                                   (guarded ? "relaxed_call." : "") + c.name;
          gpu::answer(name, std::string(gpu::result_name(result)) +
                                (survives ? ", capture survives" : ", capture invalidated"));
          const bool unguarded_use =
              !guarded &&
              is_one_of(c.name, {"record_elsewhere", "wait_elsewhere", "pointer_attributes",
                                 "context_push_pop", "stream_get_ctx", "capture_query_legacy",
                                 "capture_query_per_thread"});
          const bool guarded_use =
              guarded && is_one_of(c.name, {"event_create", "event_query", "stream_query"});
          if (unguarded_use || guarded_use) relied(name, result == CUDA_SUCCESS && survives);
        }
      }
    }
  }
}

// Probe 4: both directions across the border of a capture, without the library's care.
void boundary() {
  const CUstream captured = gpu::new_stream(), outside = gpu::new_stream();
  const CUevent event = gpu::new_event();
  CUgraph graph = nullptr;
  MUST(CU(cuEventRecord)(event, outside));
  MUST(CU(cuStreamBeginCapture)(captured, CU_STREAM_CAPTURE_MODE_RELAXED));
  CUresult result = CU(cuStreamWaitEvent)(captured, event, 0);
  gpu::answer(
      "boundary.wait_on_outside_event",
      std::string(gpu::result_name(result)) +
          (status_of(captured) == CU_STREAM_CAPTURE_STATUS_ACTIVE ? ", capture survives"
                                                                  : ", capture invalidated"));
  CU(cuStreamEndCapture)(captured, &graph);

  MUST(CU(cuStreamBeginCapture)(captured, CU_STREAM_CAPTURE_MODE_RELAXED));
  result = CU(cuStreamWaitEvent)(captured, event, CU_EVENT_WAIT_EXTERNAL);
  relied("boundary.external_wait_is_captured",
         result == CUDA_SUCCESS && status_of(captured) == CU_STREAM_CAPTURE_STATUS_ACTIVE);
  CU(cuStreamEndCapture)(captured, &graph);

  MUST(CU(cuStreamBeginCapture)(captured, CU_STREAM_CAPTURE_MODE_RELAXED));
  MUST(CU(cuEventRecord)(event, captured));
  result = CU(cuStreamWaitEvent)(outside, event, 0);
  gpu::answer(
      "boundary.outside_stream_waits_for_captured_event",
      std::string(gpu::result_name(result)) + (status_of(outside) == CU_STREAM_CAPTURE_STATUS_ACTIVE
                                                   ? ", the stream joined the capture"
                                                   : ", the stream did not join"));
  result = CU(cuStreamEndCapture)(captured, &graph);
  gpu::answer("boundary.end_with_unjoined_stream", gpu::result_name(result));

  const CUstream blocking = gpu::new_stream(CU_STREAM_DEFAULT);
  CUstreamCaptureStatus status;
  MUST(CU(cuStreamBeginCapture)(blocking, CU_STREAM_CAPTURE_MODE_RELAXED));
  result = CU(cuStreamIsCapturing)(CU_STREAM_LEGACY, &status);
  relied("boundary.legacy_query_while_blocking_stream_captures",
         result == CUDA_ERROR_STREAM_CAPTURE_IMPLICIT &&
             status_of(blocking) == CU_STREAM_CAPTURE_STATUS_ACTIVE);
  CU(cuStreamEndCapture)(blocking, &graph);
}

// Step 5 of the handshake: one event serves many record-and-waits (R27).
void event_reuse() {
  const CUstream first = gpu::new_stream(), second = gpu::new_stream(),
                 consumer = gpu::new_stream();
  const CUevent event = gpu::new_event();
  spin(first, 20);
  MUST(CU(cuEventRecord)(event, first));
  MUST(CU(cuStreamWaitEvent)(consumer, event, 0));
  MUST(CU(cuEventRecord)(event, second));  // idle
  MUST(CU(cuStreamWaitEvent)(consumer, event, 0));
  relied("a_wait_binds_to_the_record_of_its_time", !finished(consumer));
  gpu::synchronize_all();
}

int destroyed() {
  const CUstream gone = gpu::new_stream(), consumer = gpu::new_stream();
  MUST(CU(cuStreamDestroy)(gone));
  CUcontext context = nullptr;
  gpu::answer("destroyed_stream.get_ctx", gpu::result_name(CU(cuStreamGetCtx)(gone, &context)));
  CUstreamCaptureStatus status;
  gpu::answer("destroyed_stream.capture_query",
              gpu::result_name(CU(cuStreamIsCapturing)(gone, &status)));
  const CUevent event = gpu::new_event();
  gpu::answer("destroyed_stream.record", gpu::result_name(CU(cuEventRecord)(event, gone)));
  gpu::answer("destroyed_stream.wait", gpu::result_name(CU(cuStreamWaitEvent)(consumer, event, 0)));
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  const CUcontext context = gpu::start();
  if (argc > 1 && strcmp(argv[1], "destroyed") == 0) return destroyed();
  legacy_join(context);
  event_reuse();
  boundary();
  calls_during_capture(context);
  return broken == 0 ? 0 : 1;
}
