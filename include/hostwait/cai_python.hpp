// SPDX-License-Identifier: Apache-2.0
// Copyright The hostwait authors
//
// Python glue of the exchange library: C++20, header only, limited C API (define Py_LIMITED_API as
// 0x030B0000 or later, or not at all). Imports neither numpy nor cupy. Link hostwait::cai_python.
//
// A consumer, with the GIL held:
//
//   namespace cai = hostwait::cai::py;
//   auto x = cai::view::from(object);                       // null: exception set
//   cai::view* arrays[] = {&*x};
//   auto use = cai::use::acquire(hostwait_cai_stream_of(my_stream), arrays);
//   launch(my_stream, x->desc().ptr, ...);
//   return use->release();                                  // or leave the scope
//
// A producer fills `cai::produced` and returns cai::to_dict(...) from __cuda_array_interface__ and
// cai::to_dlpack(...) from __dlpack__ (cai_python/produce.hpp).
//
// Contracts
//   - Every function wants the GIL, and returns with it; it is given away around driver calls.
//   - Failure is a null or false result with a Python exception set; it carries `code`, `key`,
//     `index` and `driver` (see cai.h). An exception of a getter passes unchanged.
//   - The getter of an object is called once per view.
//   - Owners are kept until the consumer's stream has passed the release; they are dropped under
//     the GIL by any later call of this header, never in a host callback. After the interpreter
//     began to finalize they leak on purpose.
//   - One main interpreter; not for subinterpreters with their own GIL.
#pragma once

#include <hostwait/cai_python/produce.hpp>
#include <hostwait/cai_python/use.hpp>

namespace hostwait::cai::py {

/* Drops owners whose work is done; `left` (may be null): how many still wait. For programs that
 * make no other call for long. */
inline bool collect(size_t* left = nullptr) {
  if (!detail::enter()) return false;
  if (left != nullptr) *left = 0;
  detail::drop_due(left);
  return true;
}

}  // namespace hostwait::cai::py
