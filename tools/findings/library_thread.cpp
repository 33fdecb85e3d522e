// SPDX-License-Identifier: Apache-2.0
// Copyright The hostwait authors
// Calls that libraries make on threads of their own (autograd engines, XLA's workers).
#include <algorithm>

#include "finding.hpp"

namespace hostwait {

bool on_library_thread(const finding& of) {
  if (of.native.empty() || !of.python.empty()) return false;
  // A stack that was cut at its depth limit may have gone on in the program.
  const native_frame& outermost = of.native.back();
  const bool whole = outermost.owner == frame_owner::system && outermost.function != "_start" &&
                     outermost.function.find("libc_start") == std::string::npos;
  return whole &&
         std::any_of(
             of.native.begin(), of.native.end(),
             [](const native_frame& frame) { return frame.owner == frame_owner::library; }) &&
         std::none_of(of.native.begin(), of.native.end(), [](const native_frame& frame) {
           return frame.owner == frame_owner::user || frame.owner == frame_owner::interpreter;
         });
}

}  // namespace hostwait
