// SPDX-License-Identifier: Apache-2.0
// Copyright The hostwait authors
// Loading of modules and libraries. Images are not compiled: of PTX text the names are read, of
// anything else nothing. Measured: loading and unloading a module waits for every stream.
#include "module.hpp"

#include <algorithm>
#include <cctype>
#include <cstring>
#include <fstream>
#include <iterator>

#include "capture.hpp"
#include "memory.hpp"

namespace hostwait::sim {
namespace {

std::mutex& module_mutex() {
  static auto* const mutex = new std::mutex;
  return *mutex;
}

module* find_module(CUmodule handle) {
  auto* m = reinterpret_cast<module*>(handle);
  return m && m->magic == module::right_magic ? m : nullptr;
}
module* find_library(CUlibrary handle) {
  return find_module(reinterpret_cast<CUmodule>(handle));
}

bool name_character(char c) {
  return isalnum(static_cast<unsigned char>(c)) || c == '_' || c == '$';
}

std::string word_at(const std::string& text, size_t& at) {
  while (at < text.size() && isspace(static_cast<unsigned char>(text[at]))) ++at;
  size_t begin = at;
  while (at < text.size() && name_character(text[at])) ++at;
  return text.substr(begin, at - begin);
}

size_t element_bytes(const std::string& line) {
  if (line.find("64 ") != std::string::npos) return 8;
  if (line.find("32 ") != std::string::npos) return 4;
  if (line.find("16 ") != std::string::npos) return 2;
  return 1;
}

// .entry NAME(…), the local stack of the entry, and .global … NAME[COUNT];
void read_ptx(const std::string& text, module* m) {
  function* current = nullptr;
  size_t begin = 0;
  while (begin < text.size()) {
    size_t end = std::min(text.find('\n', begin), text.size());
    std::string line = text.substr(begin, end - begin);
    begin = end + 1;
    if (size_t at = line.find(".entry"); at != std::string::npos) {
      at += strlen(".entry");
      auto f = std::make_unique<function>();
      f->name = word_at(line, at);
      f->in = m;
      current = f.get();
      m->functions[current->name] = std::move(f);
    } else if (line.find(".local") != std::string::npos && current) {
      if (size_t open = line.rfind('['); open != std::string::npos)
        current->local_bytes += strtoull(line.c_str() + open + 1, nullptr, 10);
    } else if (line.find(".global ") != std::string::npos && !line.starts_with("\t")) {
      size_t open = line.find('[');
      size_t stop = open == std::string::npos ? line.find_first_of(";=") : open;
      if (stop == std::string::npos) continue;
      size_t last = line.find_last_not_of(" \t", stop - 1);
      size_t first = last;
      while (first > 0 && name_character(line[first - 1])) --first;
      size_t count = open == std::string::npos ? 1 : strtoull(line.c_str() + open + 1, nullptr, 10);
      m->global_sizes[line.substr(first, last - first + 1)] =
          std::max<size_t>(count, 1) * element_bytes(line.substr(0, first));
    }
  }
}

bool looks_like_ptx(const char* image) {
  for (int i = 0; i < 4096 && image[i]; ++i) {
    if (!strncmp(image + i, ".version", 8)) return true;
    if (static_cast<signed char>(image[i]) <= 0 || image[0] == '\x7f') return false;
  }
  return false;
}

CUresult read_file(const char* path, std::string* out) {
  std::ifstream file(path ? path : "", std::ios::binary);
  if (!file) return CUDA_ERROR_FILE_NOT_FOUND;
  out->assign(std::istreambuf_iterator<char>(file), {});
  return CUDA_SUCCESS;
}

CUresult load(CUmodule* out, const void* image) {
  context* ctx = current_context();
  if (!ctx) return CUDA_ERROR_INVALID_CONTEXT;
  if (!out || !image) return CUDA_ERROR_INVALID_VALUE;
  if (CUresult result = refuse_in_capture(nullptr, nullptr)) return result;
  wait_and_hold(ctx);
  *out = reinterpret_cast<CUmodule>(load_image(image, ctx));
  return CUDA_SUCCESS;
}

CUresult load_file(CUmodule* out, const char* path) {
  std::string image;
  if (CUresult result = read_file(path, &image)) return result;
  return load(out, image.c_str());
}

void release_globals(module* m) {
  std::lock_guard guard(module_mutex());
  for (auto& [name, where] : m->globals)
    if (auto taken = take_range(where.first)) unmap(*taken);
  m->globals.clear();
  m->magic = 0;  // the object is leaked: functions of it may be named later
}

CUresult unload(module* m) {
  if (!m) return CUDA_ERROR_INVALID_HANDLE;
  context* ctx = m->ctx ? m->ctx : current_context();
  if (CUresult result = refuse_in_capture(nullptr, nullptr)) return result;
  if (ctx && ctx->alive) wait_and_hold(ctx);
  release_globals(m);
  return CUDA_SUCCESS;
}

// A library's code comes into the context with the first kernel that is asked for.
CUresult load_lazily(module* m) {
  context* ctx = current_context();
  if (!ctx) return CUDA_ERROR_INVALID_CONTEXT;
  {
    std::lock_guard guard(module_mutex());
    if (m->loaded) return CUDA_SUCCESS;
    m->loaded = true;
  }
  wait_and_hold(ctx);
  return CUDA_SUCCESS;
}

CUresult global(CUdeviceptr* out, size_t* size, module* m, const char* name) {
  if (!m) return CUDA_ERROR_INVALID_HANDLE;
  if (!name) return CUDA_ERROR_INVALID_VALUE;
  context* ctx = m->ctx ? m->ctx : current_context();
  if (!ctx) return CUDA_ERROR_INVALID_CONTEXT;
  std::lock_guard guard(module_mutex());
  auto known = m->global_sizes.find(name);
  if (known == m->global_sizes.end()) return CUDA_ERROR_NOT_FOUND;
  auto& where = m->globals[name];
  if (!where.first)
    where = {allocate(known->second, memory_kind::device, ctx, 0, nullptr), known->second};
  if (out) *out = where.first;
  if (size) *size = where.second;
  return where.first ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

template <class Handle>
CUresult get_function(Handle* out, module* m, const char* name) {
  if (!m) return CUDA_ERROR_INVALID_HANDLE;
  if (!out || !name) return CUDA_ERROR_INVALID_VALUE;
  if (CUresult result = load_lazily(m)) return result;
  function* f = function_of(m, name);
  if (!f) return CUDA_ERROR_NOT_FOUND;
  *out = reinterpret_cast<Handle>(f);
  return CUDA_SUCCESS;
}

CUresult load_library(CUlibrary* out, const void* image) {
  if (!out || !image) return CUDA_ERROR_INVALID_VALUE;
  if (CUresult result = refuse_in_capture(nullptr, nullptr)) return result;
  if (context* ctx = current_context()) wait_and_hold(ctx);
  module* m = load_image(image, nullptr);
  m->loaded = false;
  *out = reinterpret_cast<CUlibrary>(m);
  return CUDA_SUCCESS;
}

CUresult load_library_file(CUlibrary* out, const char* path) {
  std::string image;
  if (CUresult result = read_file(path, &image)) return result;
  return load_library(out, image.c_str());
}

CUresult count_functions(unsigned* out, module* m) {
  if (!m) return CUDA_ERROR_INVALID_HANDLE;
  if (!out) return CUDA_ERROR_INVALID_VALUE;
  std::lock_guard guard(module_mutex());
  *out = static_cast<unsigned>(m->functions.size());
  return CUDA_SUCCESS;
}

template <class Handle>
CUresult enumerate(Handle* out, unsigned count, module* m) {
  if (!m) return CUDA_ERROR_INVALID_HANDLE;
  if (!out) return CUDA_ERROR_INVALID_VALUE;
  std::lock_guard guard(module_mutex());
  for (auto& [name, f] : m->functions) {
    if (!count--) break;
    *out++ = reinterpret_cast<Handle>(f.get());
  }
  return CUDA_SUCCESS;
}

CUresult loading_mode(CUmoduleLoadingMode* out) {
  if (!out) return CUDA_ERROR_INVALID_VALUE;
  *out = CU_MODULE_LAZY_LOADING;
  return CUDA_SUCCESS;
}

CUresult library_module(CUmodule* out, module* m) {
  if (!m) return CUDA_ERROR_INVALID_HANDLE;
  if (!out) return CUDA_ERROR_INVALID_VALUE;
  *out = reinterpret_cast<CUmodule>(m);
  return CUDA_SUCCESS;
}

}  // namespace

module* load_image(const void* image, context* ctx) {
  auto* m = kept(new module);
  m->ctx = ctx;
  const char* text = static_cast<const char*>(image);
  m->lists_entries = looks_like_ptx(text);
  if (m->lists_entries) read_ptx(text, m);
  return m;
}

function* function_of(module* in, const std::string& name) {
  std::lock_guard guard(module_mutex());
  auto found = in->functions.find(name);
  if (found != in->functions.end()) return found->second.get();
  if (in->lists_entries) return nullptr;
  auto f = std::make_unique<function>();
  f->name = name;
  f->in = in;
  return (in->functions[name] = std::move(f)).get();
}

}  // namespace hostwait::sim

using namespace hostwait::sim;

SIM_API(cuModuleLoad, (CUmodule * out, const char* path), load_file(out, path))
SIM_API(cuModuleLoadData, (CUmodule * out, const void* image), load(out, image))
SIM_API(cuModuleLoadDataEx, (CUmodule * out, const void* image, unsigned, CUjit_option*, void**),
        load(out, image))
SIM_API(cuModuleLoadFatBinary, (CUmodule * out, const void* image), load(out, image))
SIM_API(cuModuleUnload, (CUmodule m), unload(find_module(m)))
SIM_API(cuModuleGetLoadingMode, (CUmoduleLoadingMode * out), loading_mode(out))
SIM_API(cuModuleGetFunction, (CUfunction * out, CUmodule m, const char* name),
        get_function(out, find_module(m), name))
SIM_API(cuModuleGetFunctionCount, (unsigned* out, CUmodule m), count_functions(out, find_module(m)))
SIM_API(cuModuleEnumerateFunctions, (CUfunction * out, unsigned count, CUmodule m),
        enumerate(out, count, find_module(m)))
SIM_API(cuModuleGetGlobal_v2, (CUdeviceptr * out, size_t* size, CUmodule m, const char* name),
        global(out, size, find_module(m), name))
SIM_API(cuLibraryLoadData,
        (CUlibrary * out, const void* image, CUjit_option*, void**, unsigned, CUlibraryOption*,
         void**, unsigned),
        load_library(out, image))
SIM_API(cuLibraryLoadFromFile,
        (CUlibrary * out, const char* path, CUjit_option*, void**, unsigned, CUlibraryOption*,
         void**, unsigned),
        load_library_file(out, path))
SIM_API(cuLibraryUnload, (CUlibrary l), unload(find_library(l)))
SIM_API(cuLibraryGetKernel, (CUkernel * out, CUlibrary l, const char* name),
        get_function(out, find_library(l), name))
SIM_API(cuLibraryGetKernelCount, (unsigned* out, CUlibrary l),
        count_functions(out, find_library(l)))
SIM_API(cuLibraryEnumerateKernels, (CUkernel * out, unsigned count, CUlibrary l),
        enumerate(out, count, find_library(l)))
SIM_API(cuLibraryGetModule, (CUmodule * out, CUlibrary l), library_module(out, find_library(l)))
SIM_API(cuLibraryGetGlobal, (CUdeviceptr * out, size_t* size, CUlibrary l, const char* name),
        global(out, size, find_library(l), name))
SIM_API(cuLibraryGetManaged, (CUdeviceptr * out, size_t* size, CUlibrary l, const char* name),
        global(out, size, find_library(l), name))
