// SPDX-License-Identifier: Apache-2.0
// Copyright The hostwait authors
// The copy calls: linear, arrays, 2D, 3D, peer and batch, blocking and asynchronous by name.
#include "capture.hpp"
#include "copy.hpp"

namespace hostwait::sim {
namespace {

template <class Description>
CUresult described(CUstream s, bool per_thread, bool synchronous, const Description* p) {
  copy_shape shape;
  if (CUresult result = describe(p, &shape)) return result;
  return copy(s, per_thread, synchronous, shape);
}

template <class To, class From>
CUresult bytes(CUstream s, bool per_thread, bool synchronous, To to, From from, size_t count) {
  return copy(s, per_thread, synchronous, {to, from, count});
}

copy_end in_array(CUarray handle, size_t offset) {
  array* a = find_array(handle);
  return {a ? a->data + offset : nullptr, 0, 0, true};
}

// The 3D description without the device fields, which do not change anything here: addresses
// are unique over all devices.
CUresult peer3d(CUstream s, bool per_thread, bool synchronous, const CUDA_MEMCPY3D_PEER* p) {
  if (!p) return CUDA_ERROR_INVALID_VALUE;
  CUDA_MEMCPY3D plain{};
  plain.srcXInBytes = p->srcXInBytes;
  plain.srcY = p->srcY;
  plain.srcZ = p->srcZ;
  plain.srcMemoryType = p->srcMemoryType;
  plain.srcHost = p->srcHost;
  plain.srcDevice = p->srcDevice;
  plain.srcArray = p->srcArray;
  plain.srcPitch = p->srcPitch;
  plain.srcHeight = p->srcHeight;
  plain.dstXInBytes = p->dstXInBytes;
  plain.dstY = p->dstY;
  plain.dstZ = p->dstZ;
  plain.dstMemoryType = p->dstMemoryType;
  plain.dstHost = p->dstHost;
  plain.dstDevice = p->dstDevice;
  plain.dstArray = p->dstArray;
  plain.dstPitch = p->dstPitch;
  plain.dstHeight = p->dstHeight;
  plain.WidthInBytes = p->WidthInBytes;
  plain.Height = p->Height;
  plain.Depth = p->Depth;
  return described(s, per_thread, synchronous, &plain);
}

CUresult batch(CUdeviceptr* to, CUdeviceptr* from, size_t* sizes, size_t count, size_t* failed,
               CUstream handle, bool per_thread) {
  CUresult error;
  stream* s = find_stream(handle, per_thread, &error);
  if (!s) return error;
  // The batch calls refuse the legacy stream.
  if (s->kind == stream_kind::legacy || !to || !from || !sizes) return CUDA_ERROR_INVALID_VALUE;
  for (size_t i = 0; i < count; ++i) {
    if (CUresult result = copy_on(s, false, {linear(to[i]), linear(from[i]), sizes[i]})) {
      if (failed) *failed = i;
      return result;
    }
  }
  return CUDA_SUCCESS;
}

bool place(const CUmemcpy3DOperand& operand, copy_end* out) {
  if (operand.type == CU_MEMCPY_OPERAND_TYPE_ARRAY) {
    array* a = find_array(operand.op.array.array);
    if (!a) return false;
    *out = {a->data + operand.op.array.offset.x + operand.op.array.offset.y * a->width_bytes +
                operand.op.array.offset.z * a->width_bytes * a->height,
            a->width_bytes, a->width_bytes * a->height, true};
    return true;
  }
  *out = linear(operand.op.ptr.ptr);
  out->row = operand.op.ptr.rowLength;
  out->slice = out->row * operand.op.ptr.layerHeight;
  return true;
}

CUresult batch3d(size_t count, CUDA_MEMCPY3D_BATCH_OP* ops, size_t* failed, CUstream handle,
                 bool per_thread) {
  CUresult error;
  stream* s = find_stream(handle, per_thread, &error);
  if (!s) return error;
  if (s->kind == stream_kind::legacy || !ops) return CUDA_ERROR_INVALID_VALUE;
  for (size_t i = 0; i < count; ++i) {
    copy_shape shape;
    shape.width = ops[i].extent.width;
    shape.height = ops[i].extent.height;
    shape.depth = ops[i].extent.depth;
    CUresult result = place(ops[i].dst, &shape.to) && place(ops[i].src, &shape.from)
                          ? CUDA_SUCCESS
                          : CUDA_ERROR_INVALID_VALUE;
    if (shape.to.row == 0) shape.to.row = shape.width;
    if (shape.from.row == 0) shape.from.row = shape.width;
    if (shape.to.slice == 0) shape.to.slice = shape.to.row * shape.height;
    if (shape.from.slice == 0) shape.from.slice = shape.from.row * shape.height;
    if (!result) result = copy_on(s, false, shape);
    if (result) {
      if (failed) *failed = i;
      return result;
    }
  }
  return CUDA_SUCCESS;
}

}  // namespace
}  // namespace hostwait::sim

using namespace hostwait::sim;

SIM_API_PTDS(cuMemcpy, (CUdeviceptr to, CUdeviceptr from, size_t n),
             bytes(nullptr, per_thread, true, linear(to), linear(from), n))
SIM_API_PTSZ(cuMemcpyAsync, (CUdeviceptr to, CUdeviceptr from, size_t n, CUstream s),
             bytes(s, per_thread, false, linear(to), linear(from), n))
SIM_API_PTDS(cuMemcpyHtoD_v2, (CUdeviceptr to, const void* from, size_t n),
             bytes(nullptr, per_thread, true, linear(to), linear(from), n))
SIM_API_PTDS(cuMemcpyDtoH_v2, (void* to, CUdeviceptr from, size_t n),
             bytes(nullptr, per_thread, true, linear(to), linear(from), n))
SIM_API_PTDS(cuMemcpyDtoD_v2, (CUdeviceptr to, CUdeviceptr from, size_t n),
             bytes(nullptr, per_thread, true, linear(to), linear(from), n))
SIM_API_PTSZ(cuMemcpyHtoDAsync_v2, (CUdeviceptr to, const void* from, size_t n, CUstream s),
             bytes(s, per_thread, false, linear(to), linear(from), n))
SIM_API_PTSZ(cuMemcpyDtoHAsync_v2, (void* to, CUdeviceptr from, size_t n, CUstream s),
             bytes(s, per_thread, false, linear(to), linear(from), n))
SIM_API_PTSZ(cuMemcpyDtoDAsync_v2, (CUdeviceptr to, CUdeviceptr from, size_t n, CUstream s),
             bytes(s, per_thread, false, linear(to), linear(from), n))
SIM_API_PTDS(cuMemcpyPeer, (CUdeviceptr to, CUcontext, CUdeviceptr from, CUcontext, size_t n),
             bytes(nullptr, per_thread, true, linear(to), linear(from), n))
SIM_API_PTSZ(cuMemcpyPeerAsync,
             (CUdeviceptr to, CUcontext, CUdeviceptr from, CUcontext, size_t n, CUstream s),
             bytes(s, per_thread, false, linear(to), linear(from), n))
SIM_API_PTDS(cuMemcpyDtoA_v2, (CUarray to, size_t offset, CUdeviceptr from, size_t n),
             bytes(nullptr, per_thread, true, in_array(to, offset), linear(from), n))
SIM_API_PTDS(cuMemcpyAtoD_v2, (CUdeviceptr to, CUarray from, size_t offset, size_t n),
             bytes(nullptr, per_thread, true, linear(to), in_array(from, offset), n))
SIM_API_PTDS(cuMemcpyHtoA_v2, (CUarray to, size_t offset, const void* from, size_t n),
             bytes(nullptr, per_thread, true, in_array(to, offset), linear(from), n))
SIM_API_PTDS(cuMemcpyAtoH_v2, (void* to, CUarray from, size_t offset, size_t n),
             bytes(nullptr, per_thread, true, linear(to), in_array(from, offset), n))
SIM_API_PTDS(cuMemcpyAtoA_v2, (CUarray to, size_t to_at, CUarray from, size_t from_at, size_t n),
             bytes(nullptr, per_thread, true, in_array(to, to_at), in_array(from, from_at), n))
SIM_API_PTSZ(cuMemcpyHtoAAsync_v2,
             (CUarray to, size_t offset, const void* from, size_t n, CUstream s),
             bytes(s, per_thread, false, in_array(to, offset), linear(from), n))
SIM_API_PTSZ(cuMemcpyAtoHAsync_v2, (void* to, CUarray from, size_t offset, size_t n, CUstream s),
             bytes(s, per_thread, false, linear(to), in_array(from, offset), n))
SIM_API_PTDS(cuMemcpy2D_v2, (const CUDA_MEMCPY2D* p), described(nullptr, per_thread, true, p))
SIM_API_PTDS(cuMemcpy2DUnaligned_v2, (const CUDA_MEMCPY2D* p),
             described(nullptr, per_thread, true, p))
SIM_API_PTSZ(cuMemcpy2DAsync_v2, (const CUDA_MEMCPY2D* p, CUstream s),
             described(s, per_thread, false, p))
SIM_API_PTDS(cuMemcpy3D_v2, (const CUDA_MEMCPY3D* p), described(nullptr, per_thread, true, p))
SIM_API_PTSZ(cuMemcpy3DAsync_v2, (const CUDA_MEMCPY3D* p, CUstream s),
             described(s, per_thread, false, p))
SIM_API_PTDS(cuMemcpy3DPeer, (const CUDA_MEMCPY3D_PEER* p), peer3d(nullptr, per_thread, true, p))
SIM_API_PTSZ(cuMemcpy3DPeerAsync, (const CUDA_MEMCPY3D_PEER* p, CUstream s),
             peer3d(s, per_thread, false, p))
SIM_API_PTSZ(cuMemcpyBatchAsync,
             (CUdeviceptr * to, CUdeviceptr* from, size_t* sizes, size_t count, CUmemcpyAttributes*,
              size_t*, size_t, size_t* failed, CUstream s),
             batch(to, from, sizes, count, failed, s, per_thread))
SIM_API_PTSZ(cuMemcpyBatchAsync_v2,
             (CUdeviceptr * to, CUdeviceptr* from, size_t* sizes, size_t count, CUmemcpyAttributes*,
              size_t*, size_t, CUstream s),
             batch(to, from, sizes, count, nullptr, s, per_thread))
SIM_API_PTSZ(cuMemcpy3DBatchAsync,
             (size_t count, CUDA_MEMCPY3D_BATCH_OP* ops, size_t* failed, unsigned long long,
              CUstream s),
             batch3d(count, ops, failed, s, per_thread))
SIM_API_PTSZ(cuMemcpy3DBatchAsync_v2,
             (size_t count, CUDA_MEMCPY3D_BATCH_OP* ops, unsigned long long, CUstream s),
             batch3d(count, ops, nullptr, s, per_thread))
