// SPDX-License-Identifier: Apache-2.0
// Copyright The hostwait authors
// Fingerprint 1, and the choice of the frames that stand for a finding.
#include "finding.hpp"
#include "sha256.hpp"

namespace hostwait {

namespace {

// Whether user code was reached: by a native frame of the program, or by the interpreter.
bool ends_library_part(const native_frame& frame) {
  return frame.owner == frame_owner::user || frame.owner == frame_owner::interpreter;
}

std::string module_stem(const std::string& path) {
  const std::string base = base_name(path);
  // "libmine" of "libmine.so.2.1", "train" of "train.py".
  const std::size_t dot = base.find('.', 1);
  return dot == std::string::npos ? base : base.substr(0, dot);
}

}  // namespace

const native_frame* library_frame(const finding& of) {
  for (const native_frame& frame : of.native) {
    if (frame.owner == frame_owner::library) return &frame;
    if (ends_library_part(frame)) break;
  }
  return nullptr;
}

const native_frame* user_frame(const finding& of) {
  for (const native_frame& frame : of.native) {
    if (frame.owner == frame_owner::user) return &frame;
  }
  return nullptr;
}

const python_frame* user_python_frame(const finding& of) {
  for (const python_frame& frame : of.python) {
    if (!frame.library) return &frame;
  }
  return of.python.empty() ? nullptr : &of.python.front();
}

std::string fingerprint_of(const finding& of) {
  constexpr std::size_t user_functions = 3;
  const std::size_t plus = of.call.find(" + ");
  std::vector<std::string> parts = {kind_name(of.kind), driver_base_name(of.call.substr(0, plus)),
                                    of.label, of.range};
  // A function without a name is "?": its address would change with every build.
  const native_frame* library = library_frame(of);
  parts.push_back(library == nullptr ? ""
                                     : module_stem(library->module) + ":" +
                                           (library->function.empty() ? "?" : library->function));
  std::size_t users = 0;
  for (const native_frame& frame : of.native) {
    if (frame.owner != frame_owner::user || users == user_functions) continue;
    parts.push_back(module_stem(frame.module) + ":" +
                    (frame.function.empty() ? "?" : frame.function));
    ++users;
  }
  const python_frame* chosen = user_python_frame(of);
  const bool any_user = chosen != nullptr && !chosen->library;
  for (const python_frame& frame : of.python) {
    if (users == user_functions) break;
    if (any_user && frame.library) continue;
    parts.push_back(module_stem(frame.file) + ":" + frame.function);
    ++users;
  }
  std::string text;
  for (const std::string& part : parts) {
    text += part;
    text += '\0';
  }
  return sha256_hex(text).substr(0, 16);
}

}  // namespace hostwait
