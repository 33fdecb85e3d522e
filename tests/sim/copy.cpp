// SPDX-License-Identifier: Apache-2.0
// Copyright The hostwait authors
// The copy engine: staging, waiting and moving of bytes, with the limits that were measured.
#include "copy.hpp"

#include <cstring>

#include "capture.hpp"
#include "hostwait_sim.h"
#include "memory.hpp"

namespace hostwait::sim {
namespace {

constexpr size_t inline_limit = 64 << 10;  // pageable bytes that travel in the queue itself
constexpr size_t staging_limit = 2 << 20;  // pageable bytes that one copy may stage
constexpr size_t cheap = 64 << 10;         // copied by the caller when the stream is idle

std::atomic<uint64_t> copy_speed{0};

memory_kind kind_of(const copy_end& end) {
  if (end.is_array) return memory_kind::device;
  auto found = find_range(end.at);
  return found ? found->kind : memory_kind::pageable;
}

bool on_device(memory_kind kind) {
  return kind == memory_kind::device || kind == memory_kind::stream_ordered;
}

// Measured for 13.0 on an H200: data/blocking-h200-cuda13.0-driver580.csv.
bool host_waits(bool synchronous, memory_kind to, memory_kind from, size_t bytes) {
  if (synchronous) return !(on_device(to) && on_device(from));
  if (to == memory_kind::managed || from == memory_kind::managed) return true;
  if (!on_device(to)) return !on_device(from) || to == memory_kind::pageable;
  return from == memory_kind::pageable && bytes > staging_limit;
}

// The source as it is now, packed; the caller may change it as soon as the call returns.
std::shared_ptr<std::vector<char>> stage(const copy_shape& shape) {
  auto bytes = std::make_shared<std::vector<char>>(shape.width * shape.height * shape.depth);
  copy_shape pack = shape;
  pack.to = {bytes->data(), shape.width, shape.width * shape.height};
  move_bytes(pack);
  return bytes;
}

}  // namespace

uint64_t copy_busy_ns(size_t bytes) {
  uint64_t speed = copy_speed.load(std::memory_order_relaxed);
  return speed
             ? static_cast<uint64_t>(1e9 * static_cast<double>(bytes) / static_cast<double>(speed))
             : 0;
}

void move_bytes(const copy_shape& shape) {
  for (size_t z = 0; z < shape.depth; ++z)
    for (size_t y = 0; y < shape.height; ++y)
      memmove(shape.to.at + z * shape.to.slice + y * shape.to.row,
              shape.from.at + z * shape.from.slice + y * shape.from.row, shape.width);
}

CUresult copy_on(stream* s, bool synchronous, const copy_shape& shape) {
  if (synchronous)
    if (CUresult result = refuse_wait_for_work(s)) return result;
  size_t bytes = shape.width * shape.height * shape.depth;
  if (!bytes) return CUDA_SUCCESS;
  if (!shape.to.at || !shape.from.at) return CUDA_ERROR_INVALID_VALUE;
  memory_kind to = kind_of(shape.to);
  memory_kind from = kind_of(shape.from);
  bool waits = host_waits(synchronous, to, from, bytes);

  work item;
  item.busy_ns = copy_busy_ns(bytes);
  // A copy for which the host waits anyway is its own cost when nothing is ahead of it.
  item.by_worker = bytes > cheap && !waits;
  item.run = [shape] { move_bytes(shape); };
  lock held(q().mutex);
  if (s->capturing)
    waits = false;
  else if (!waits && from == memory_kind::pageable) {
    auto staged = stage(shape);
    copy_shape unpack = shape;
    unpack.from = {staged->data(), shape.width, shape.width * shape.height};
    item.run = [unpack, staged] { move_bytes(unpack); };
    if (bytes <= inline_limit) {
      item.staged_bytes = bytes;
      item.slots_wanted = 2;
    } else {
      item.staging_buffer = true;
    }
  }
  point done{};
  if (CUresult result = enqueue_locked(held, s, CU_GRAPH_NODE_TYPE_MEMCPY, std::move(item), &done))
    return result;
  if (waits) wait_for(held, {done});
  return CUDA_SUCCESS;
}

CUresult copy(CUstream handle, bool per_thread, bool synchronous, const copy_shape& shape) {
  CUresult error;
  stream* s = find_stream(handle, per_thread, &error);
  return s ? copy_on(s, synchronous, shape) : error;
}

namespace {

bool place(CUmemorytype type, const void* host, CUdeviceptr device_at, CUarray handle, size_t pitch,
           size_t rows, size_t x, size_t y, size_t z, copy_end* out) {
  if (type == CU_MEMORYTYPE_ARRAY) {
    array* a = find_array(handle);
    if (!a) return false;
    out->is_array = true;
    out->at = a->data;
    pitch = a->width_bytes;
    rows = a->height;
  } else {
    out->at = type == CU_MEMORYTYPE_HOST ? const_cast<char*>(static_cast<const char*>(host))
                                         : reinterpret_cast<char*>(device_at);
  }
  out->row = pitch;
  out->slice = pitch * rows;
  out->at += x + y * out->row + z * out->slice;
  return true;
}

}  // namespace

CUresult describe(const CUDA_MEMCPY2D* p, copy_shape* out) {
  if (!p) return CUDA_ERROR_INVALID_VALUE;
  out->width = p->WidthInBytes;
  out->height = p->Height;
  size_t to_pitch = p->dstPitch ? p->dstPitch : p->WidthInBytes;
  size_t from_pitch = p->srcPitch ? p->srcPitch : p->WidthInBytes;
  bool good = place(p->dstMemoryType, p->dstHost, p->dstDevice, p->dstArray, to_pitch, 0,
                    p->dstXInBytes, p->dstY, 0, &out->to) &&
              place(p->srcMemoryType, p->srcHost, p->srcDevice, p->srcArray, from_pitch, 0,
                    p->srcXInBytes, p->srcY, 0, &out->from);
  return good ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

CUresult describe(const CUDA_MEMCPY3D* p, copy_shape* out) {
  if (!p) return CUDA_ERROR_INVALID_VALUE;
  out->width = p->WidthInBytes;
  out->height = p->Height;
  out->depth = p->Depth;
  size_t to_pitch = p->dstPitch ? p->dstPitch : p->WidthInBytes;
  size_t from_pitch = p->srcPitch ? p->srcPitch : p->WidthInBytes;
  bool good =
      place(p->dstMemoryType, p->dstHost, p->dstDevice, p->dstArray, to_pitch,
            p->dstHeight ? p->dstHeight : p->Height, p->dstXInBytes, p->dstY, p->dstZ, &out->to) &&
      place(p->srcMemoryType, p->srcHost, p->srcDevice, p->srcArray, from_pitch,
            p->srcHeight ? p->srcHeight : p->Height, p->srcXInBytes, p->srcY, p->srcZ, &out->from);
  return good ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

}  // namespace hostwait::sim

extern "C" __attribute__((visibility("default"))) void hostwait_sim_set_copy_speed(
    uint64_t bytes_per_second) {
  hostwait::sim::copy_speed = bytes_per_second;
}
