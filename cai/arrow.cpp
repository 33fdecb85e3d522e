// SPDX-License-Identifier: Apache-2.0
// Copyright The hostwait authors
// Arrow's C Device interface: readiness is an event that the producer recorded and owns.
#include "policy.hpp"
#include "session.hpp"

namespace hostwait::cai {
namespace {

// Layouts of the Arrow C Data and C Device interfaces.
struct arrow_array {
  int64_t length, null_count, offset, buffer_count, child_count;
  const void** buffers;
  arrow_array** children;
  arrow_array* dictionary;
  void (*release)(arrow_array*);
  void* private_data;
};
struct arrow_device_array {
  arrow_array array;
  int64_t device_id;
  int32_t device_type;
  void* sync_event;  // points to the variable that holds the event
  int64_t reserved[3];
};

}  // namespace
}  // namespace hostwait::cai

using namespace hostwait::cai;

int hostwait_cai_arrow_ready(const void* arrow, const hostwait_cai_policy* given,
                             hostwait_cai_ready* out, hostwait_cai_error* err) {
  clear(err);
  const error_sink sink{err};
  const auto* a = static_cast<const arrow_device_array*>(arrow);
  if (a == nullptr || out == nullptr) {
    return fail(sink, HOSTWAIT_CAI_ERR_INVALID, "", -1, "bad arguments");
  }
  HOSTWAIT_CAI_INIT(*out);
  out->device = -1;
  if (a->array.release == nullptr) {
    return fail(sink, HOSTWAIT_CAI_ERR_RELEASED, "", -1, "the array was released");
  }
  const hostwait_cai_policy policy = complete_policy(given);
  const bool reserved = a->reserved[0] != 0 || a->reserved[1] != 0 || a->reserved[2] != 0;
  if (reserved && !(policy.lenient & HOSTWAIT_CAI_LENIENT_RESERVED)) {
    return fail(sink, HOSTWAIT_CAI_ERR_RESERVED, "reserved", -1, "reserved words are not zero");
  }
  if (a->device_type == HOSTWAIT_CAI_DL_CPU) return HOSTWAIT_CAI_OK;
  if (a->device_type != HOSTWAIT_CAI_DL_CUDA && a->device_type != HOSTWAIT_CAI_DL_CUDA_HOST &&
      a->device_type != HOSTWAIT_CAI_DL_CUDA_MANAGED) {
    return fail(sink, HOSTWAIT_CAI_ERR_DEVICE, "device_type", -1, "device type %d is not CUDA's",
                static_cast<int>(a->device_type));
  }
  if (a->device_id < 0 || a->device_id > INT32_MAX) {
    return fail(sink, HOSTWAIT_CAI_ERR_DEVICE, "device_id", -1, "device %lld does not exist",
                static_cast<long long>(a->device_id));
  }
  out->device = static_cast<int32_t>(a->device_id);
  if (a->sync_event == nullptr) return HOSTWAIT_CAI_OK;
  out->event = value(*static_cast<void* const*>(a->sync_event));
  if (out->event != 0) out->kind = HOSTWAIT_CAI_READY_EVENT;
  return HOSTWAIT_CAI_OK;
}

int hostwait_cai_arrow_event(hostwait_cai_stream stream, uint64_t* event, hostwait_cai_error* err) {
  clear(err);
  if (event == nullptr) return fail({err}, HOSTWAIT_CAI_ERR_INVALID, "", -1, "bad arguments");
  *event = 0;
  session s;
  stream_ref named{};
  if (const int code =
          s.open_on(stream, "the stream captures: its event would mean nothing outside the graph",
                    err, &named)) {
    return code;
  }
  uint64_t made = 0;
  if (const int code = s.new_event(named.context, &made)) return code;
  if (const int code = s.record(made, named)) {
    s.driver->event_destroy(handle(made));
    return code;
  }
  *event = made;
  return HOSTWAIT_CAI_OK;
}

void hostwait_cai_arrow_event_free(uint64_t event) {
  const hostwait_cai_driver* driver = loaded_driver();
  if (event != 0 && driver != nullptr) driver->event_destroy(handle(event));
}
