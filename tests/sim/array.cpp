// SPDX-License-Identifier: Apache-2.0
// Copyright The hostwait authors
// CUDA arrays: creation, description, and a release that waits for every stream.
#include <sys/mman.h>

#include <algorithm>

#include "capture.hpp"
#include "copy.hpp"

namespace hostwait::sim {

array* find_array(CUarray handle) {
  auto* a = reinterpret_cast<array*>(handle);
  return a && a->magic == array::right_magic ? a : nullptr;
}

namespace {

size_t element_bytes(CUarray_format format) {
  switch (format) {
    case CU_AD_FORMAT_UNSIGNED_INT8:
    case CU_AD_FORMAT_SIGNED_INT8:
      return 1;
    case CU_AD_FORMAT_UNSIGNED_INT16:
    case CU_AD_FORMAT_SIGNED_INT16:
    case CU_AD_FORMAT_HALF:
      return 2;
    case CU_AD_FORMAT_UNSIGNED_INT32:
    case CU_AD_FORMAT_SIGNED_INT32:
    case CU_AD_FORMAT_FLOAT:
      return 4;
    default:
      return 0;
  }
}

size_t size_of(const array* a) {
  return a->width_bytes * a->height * a->depth;
}

CUresult create(CUarray* out, const CUDA_ARRAY3D_DESCRIPTOR& d) {
  context* ctx = current_context();
  if (!ctx) return CUDA_ERROR_INVALID_CONTEXT;
  size_t element = element_bytes(d.Format) * d.NumChannels;
  if (!out || !d.Width || !element) return CUDA_ERROR_INVALID_VALUE;
  if (CUresult result = refuse_in_capture(nullptr, nullptr)) return result;
  auto* a = new array;
  a->ctx = ctx;
  a->width_bytes = d.Width * element;
  a->height = std::max<size_t>(d.Height, 1);
  a->depth = std::max<size_t>(d.Depth, 1);
  a->description = d;
  void* at = mmap(nullptr, size_of(a), PROT_READ | PROT_WRITE,
                  MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (at == MAP_FAILED) {
    delete a;
    return CUDA_ERROR_OUT_OF_MEMORY;
  }
  keep_object(a);
  a->data = static_cast<char*>(at);
  *out = reinterpret_cast<CUarray>(a);
  return CUDA_SUCCESS;
}

CUresult create(CUarray* out, const CUDA_ARRAY_DESCRIPTOR* d) {
  if (!d) return CUDA_ERROR_INVALID_VALUE;
  return create(out, CUDA_ARRAY3D_DESCRIPTOR{d->Width, d->Height, 0, d->Format, d->NumChannels, 0});
}

CUresult destroy(CUarray handle) {
  array* a = find_array(handle);
  if (!a) return CUDA_ERROR_INVALID_HANDLE;
  if (CUresult result = refuse_in_capture(nullptr, nullptr)) return result;
  wait_for_context(a->ctx);
  munmap(a->data, size_of(a));
  a->magic = 0;  // the small header is leaked, so that a stale handle is recognised
  return CUDA_SUCCESS;
}

CUresult describe_array(CUDA_ARRAY_DESCRIPTOR* out, CUarray handle) {
  array* a = find_array(handle);
  if (!a) return CUDA_ERROR_INVALID_HANDLE;
  if (!out) return CUDA_ERROR_INVALID_VALUE;
  *out = {a->description.Width, a->description.Height, a->description.Format,
          a->description.NumChannels};
  return CUDA_SUCCESS;
}

CUresult describe_array(CUDA_ARRAY3D_DESCRIPTOR* out, CUarray handle) {
  array* a = find_array(handle);
  if (!a) return CUDA_ERROR_INVALID_HANDLE;
  if (!out) return CUDA_ERROR_INVALID_VALUE;
  *out = a->description;
  return CUDA_SUCCESS;
}

}  // namespace
}  // namespace hostwait::sim

using namespace hostwait::sim;

SIM_API(cuArrayCreate_v2, (CUarray * out, const CUDA_ARRAY_DESCRIPTOR* d), create(out, d))
SIM_API(cuArray3DCreate_v2, (CUarray * out, const CUDA_ARRAY3D_DESCRIPTOR* d),
        d ? create(out, *d) : CUDA_ERROR_INVALID_VALUE)
SIM_API(cuArrayDestroy, (CUarray a), destroy(a))
SIM_API(cuArrayGetDescriptor_v2, (CUDA_ARRAY_DESCRIPTOR * out, CUarray a), describe_array(out, a))
SIM_API(cuArray3DGetDescriptor_v2, (CUDA_ARRAY3D_DESCRIPTOR * out, CUarray a),
        describe_array(out, a))
