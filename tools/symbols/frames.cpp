// SPDX-License-Identifier: Apache-2.0
// Copyright The hostwait authors
// Whose frame is it? By module path first, by function name for code linked into the program.
#include "frames.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <string_view>

#include "hostwait/record.h"

namespace hostwait {

namespace {

bool starts_with_any(std::string_view text, std::initializer_list<std::string_view> prefixes) {
  return std::any_of(prefixes.begin(), prefixes.end(),
                     [&](std::string_view prefix) { return text.starts_with(prefix); });
}

bool contains_any(std::string_view text, std::initializer_list<std::string_view> parts) {
  return std::any_of(parts.begin(), parts.end(), [&](std::string_view part) {
    return text.find(part) != std::string_view::npos;
  });
}

// "libc" in "libc.so.6" and "libc-2.31.so", not in "libcublas.so".
bool is_library_named(std::string_view base, std::string_view name) {
  if (!base.starts_with(name)) return false;
  const std::string_view rest = base.substr(name.size());
  return rest.starts_with(".so") || (rest.starts_with("-") && rest.find(".so") != rest.npos);
}

bool is_system(std::string_view base) {
  static constexpr std::array names = {
      "libc",   "libpthread", "libstdc++",       "libgcc_s",
      "libm",   "libdl",      "ld-linux-x86-64", "ld-linux-aarch64",
      "libc++", "linux-vdso", "libgomp",         "libffi"};
  return base == "[vdso]" || std::any_of(names.begin(), names.end(), [&](const char* name) {
           return is_library_named(base, name);
         });
}

bool is_interpreter(std::string_view base) {
  if (base.starts_with("libpython")) return true;
  // What stands between a Python line and the C function that it calls by itself.
  if (starts_with_any(base, {"_ctypes.", "_cffi_backend."})) return true;
  if (!base.starts_with("python")) return false;
  const std::string_view rest = base.substr(6);
  return std::all_of(rest.begin(), rest.end(),
                     [](unsigned char c) { return std::isdigit(c) || c == '.' || c == 't'; });
}

}  // namespace

std::string base_name(const std::string& path) {
  const std::size_t slash = path.rfind('/');
  return slash == std::string::npos ? path : path.substr(slash + 1);
}

std::string native_frame::name() const {
  if (!function.empty()) return function;
  if (module.empty()) return fmt::format("0x{:x}", offset);
  return fmt::format("{}+0x{:x}", base_name(module), offset);
}

bool is_library_path(const std::string& path) {
  return contains_any(path, {"/site-packages/", "/dist-packages/", "/lib/python"}) ||
         starts_with_any(path, {"/usr/", "/lib/", "/lib64/", "/opt/", "/nix/store/", "<frozen"});
}

bool is_python_library(const std::string& file) {
  // "/lib/python3.12/": the standard library, wherever the interpreter lies. A program's own files
  // may well lie in /usr or /opt.
  for (const std::string_view stdlib : {"/lib/python", "/lib64/python"}) {
    for (std::size_t at = file.find(stdlib); at != std::string::npos;
         at = file.find(stdlib, at + 1)) {
      const std::size_t digit = at + stdlib.size();
      if (digit < file.size() && std::isdigit(static_cast<unsigned char>(file[digit]))) return true;
    }
  }
  return contains_any(file, {"/site-packages/", "/dist-packages/", "/torchinductor_"}) ||
         starts_with_any(file, {"<frozen ", "<__array_function__", "<eval_with_key>"});
}

bool is_runtime_function(const std::string& function) {
  const std::string_view name = function;
  if (starts_with_any(name, {"__cuda", "cudart::", "__cudart", "libcudart_static_"})) return true;
  return name.starts_with("cuda") && name.size() > 4 &&
         std::isupper(static_cast<unsigned char>(name[4])) && name.find("::") == name.npos;
}

frame_owner owner_of(const std::string& module, const std::string& function, std::uint32_t flags) {
  const std::string base = base_name(module);
  if ((flags & HOSTWAIT_MODULE_OWN) != 0 ||
      starts_with_any(base, {"libhostwait.so", "libhostwait_link.so"})) {
    return frame_owner::own;
  }
  if ((flags & HOSTWAIT_MODULE_DRIVER) != 0 || is_library_named(base, "libcuda") ||
      base.starts_with("libnvidia-")) {
    return frame_owner::driver;
  }
  if (base.starts_with("libcudart")) return frame_owner::runtime;
  if (is_system(base) || function == "_start") return frame_owner::system;
  if (is_runtime_function(function)) return frame_owner::runtime;
  if (is_interpreter(base)) return frame_owner::interpreter;
  const bool shared_object = base.find(".so") != std::string::npos;
  if (shared_object && (is_library_path(module) ||
                        starts_with_any(base, {"libcu", "libnv", "libnccl", "libtorch", "libc10",
                                               "libmagma", "libxla", "libtensorflow"}))) {
    return frame_owner::library;
  }
  if (starts_with_any(function, {"thrust::", "cub::", "cuda::", "std::", "__gnu_cxx::"})) {
    return frame_owner::library;
  }
  return frame_owner::user;
}

cut_stack cut_top(std::vector<native_frame> frames) {
  // A static runtime has local helpers whose names may be stripped: such a frame belongs to the
  // runtime if a frame of the runtime in the same module follows close behind it.
  constexpr std::size_t look_ahead = 6;
  cut_stack result;
  std::size_t first = 0;
  while (first < frames.size()) {
    std::size_t next = first;
    const std::size_t end = std::min(frames.size(), first + look_ahead);
    while (next < end && frames[next].function.empty() &&
           frames[next].owner > frame_owner::runtime && frames[next].module == frames[first].module)
      ++next;
    if (next == end || frames[next].owner > frame_owner::runtime) break;
    if (next > first &&
        (frames[next].owner != frame_owner::runtime || frames[next].module != frames[first].module))
      break;
    if (frames[next].owner == frame_owner::runtime) {
      result.through_runtime = true;
      const std::string& name = frames[next].function;
      result.runtime_call = name.starts_with("cuda") && is_runtime_function(name) ? name : "";
    }
    first = next + 1;
  }
  frames.erase(frames.begin(), frames.begin() + static_cast<std::ptrdiff_t>(first));
  result.frames = std::move(frames);
  return result;
}

}  // namespace hostwait
