// SPDX-License-Identifier: Apache-2.0
// Copyright The hostwait authors
// Frames of a report, and what part of a program each belongs to.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace hostwait {

enum class frame_owner : std::uint8_t {
  own,          // hostwait's preloaded library
  driver,       // libcuda and what it brings
  runtime,      // the CUDA runtime, shared or inside another module
  system,       // libc, the loader, the C++ runtime
  interpreter,  // python and libpython: the Python frames say it better
  library,      // cuBLAS, libtorch, packages, header-only libraries in the program
  user,
};

struct native_frame {
  std::string function;  // demangled, without template arguments and parameters; "" = unknown
  std::string file;      // source file as the debug information names it; "" = unknown
  std::uint32_t line = 0;
  std::string module;        // path; "" = unknown
  std::uint64_t offset = 0;  // of the return address in the module's ELF image
  frame_owner owner = frame_owner::user;
  bool inlined = false;

  // "function", or "module+0xoffset" where it is not known.
  std::string name() const;
};

struct python_frame {
  std::string function, file;
  std::uint32_t line = 0;
  bool library = false;  // of the standard library or an installed package
};

// `flags` are the module flags of record.h. Decided by path and, inside the program, by function.
frame_owner owner_of(const std::string& module, const std::string& function, std::uint32_t flags);
bool is_library_path(const std::string& path);
// Of the standard library, an installed package, or generated (torch.compile, importlib).
bool is_python_library(const std::string& file);
bool is_runtime_function(const std::string& function);

// One native stack, innermost first, with the CUDA layers taken off its top.
struct cut_stack {
  std::vector<native_frame> frames;
  std::string runtime_call;      // outermost function of the runtime; "" where there is no name
  bool through_runtime = false;  // frames of the runtime were cut
};
cut_stack cut_top(std::vector<native_frame> frames);

std::string base_name(const std::string& path);

}  // namespace hostwait
