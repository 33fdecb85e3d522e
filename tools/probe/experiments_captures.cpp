// SPDX-License-Identifier: Apache-2.0
// Copyright The hostwait authors
// Calls while a stream capture is open: they add a node, fail, or wait as ever.
#include "stage.hpp"

namespace hostwait::probe {

namespace {

// The capture is opened behind the kernel and ended before anything else happens: waiting for the
// context would invalidate it.
void within_capture(stage& s, CUstreamCaptureMode mode, const std::function<void()>& call) {
  s.use<row_cuStreamBeginCapture_v2>(s.other_nonblocking, mode);
  s.capture_is_open(true);
  call();
  s.capture_is_open(false);
  const auto end = s.d.get<row_cuStreamEndCapture>();
  if (end == nullptr) throw unsupported{"cuStreamEndCapture is not exported"};
  CUgraph made = nullptr;
  const CUresult r = end(s.other_nonblocking, &made);
  if (r == CUDA_SUCCESS && made != nullptr) s.own.graph = made;
  s.remark(r == CUDA_SUCCESS ? "the capture survived" : "capture ended with " + s.d.name_of(r));
}

constexpr std::size_t mib = 1 << 20;

struct call {
  const char* name;
  void (*make)(stage&);
};
// Those on `other_nonblocking` are captured.
const call calls[] = {
    {"cuMemcpyDtoHAsync_v2/captured",
     [](stage& s) {
       s.measured<row_cuMemcpyDtoHAsync_v2>(s.pageable_block(), s.device_block(), mib,
                                            s.other_nonblocking);
     }},
    {"cuLaunchKernel/captured",
     [](stage& s) {
       s.measured<row_cuLaunchKernel>(s.tiny, 1u, 1u, 1u, 1u, 1u, 1u, 0u, s.other_nonblocking,
                                      static_cast<void**>(nullptr), static_cast<void**>(nullptr));
     }},
    {"cuStreamSynchronize/captured",
     [](stage& s) { s.measured<row_cuStreamSynchronize>(s.other_nonblocking); }},
    {"cuStreamQuery/captured",
     [](stage& s) { s.measured<row_cuStreamQuery>(s.other_nonblocking); }},
    {"cuStreamSynchronize/busy",
     [](stage& s) { s.measured<row_cuStreamSynchronize>(s.busy_stream()); }},
    {"cuStreamQuery/busy", [](stage& s) { s.measured<row_cuStreamQuery>(s.busy_stream()); }},
    {"cuCtxSynchronize/-", [](stage& s) { s.measured<row_cuCtxSynchronize>(); }},
    {"cuMemAlloc_v2/-", [](stage& s) { s.measured<row_cuMemAlloc_v2>(&s.own.memory, mib); }},
    {"cuMemcpyDtoH_v2/pageable",
     [](stage& s) { s.measured<row_cuMemcpyDtoH_v2>(s.pageable_block(), s.device_block(), mib); }},
    {"cuMemcpyDtoHAsync_v2/busy",
     [](stage& s) {
       s.measured<row_cuMemcpyDtoHAsync_v2>(s.pageable_block(), s.device_block(), mib,
                                            s.busy_stream());
     }},
    {"cuPointerGetAttributes/-", [](stage& s) {
       unsigned type = 0;
       CUpointer_attribute name = CU_POINTER_ATTRIBUTE_MEMORY_TYPE;
       void* value = &type;
       s.measured_other("cuPointerGetAttributes", s.d.cuPointerGetAttributes, 1u, &name, &value,
                        s.device_block());
     }}};

}  // namespace

void add_captures(catalogue& c) {
  struct mode {
    const char* name;
    CUstreamCaptureMode value;
  };
  static const mode modes[] = {{"global", CU_STREAM_CAPTURE_MODE_GLOBAL},
                               {"thread_local", CU_STREAM_CAPTURE_MODE_THREAD_LOCAL},
                               {"relaxed", CU_STREAM_CAPTURE_MODE_RELAXED}};
  for (const mode& m : modes)
    for (const call& k : calls) {
      auto& e = c.add(std::string("capture/") + m.name + "/" + k.name, "while a capture is open",
                      [&m, &k](stage& s) { within_capture(s, m.value, [&] { k.make(s); }); });
      e.prepare = [](stage& s) { s.device_block(), s.pageable_block(); };
      e.busy = {stream_kind::nonblocking};
      e.errors_fit = true;
      e.quick = &m == &modes[0] && &k == &calls[0];
    }
}

}  // namespace hostwait::probe
