// SPDX-License-Identifier: Apache-2.0
// Copyright The hostwait authors
// Modules and libraries, first use of kernels lazy and eager, growth of local memory, printf.
#include <stdlib.h>
#include <unistd.h>

#include <cstring>
#include <string>

#include "kernels.hpp"
#include "stage.hpp"

namespace hostwait::probe {

namespace {

const std::vector<stream_kind> one_stream = {stream_kind::nonblocking};

// The driver's own compiler makes a cubin of the PTX; kept for the process.
const void* cubin(stage& s) {
  static std::string image;
  if (!image.empty()) return image.data();
  CUlinkState link = nullptr;
  s.use_other("cuLinkCreate_v2", s.d.cuLinkCreate_v2, 0u, nullptr, nullptr, &link);
  const CUresult added =
      s.d.cuLinkAddData_v2 == nullptr
          ? CUDA_ERROR_NOT_FOUND
          : s.d.cuLinkAddData_v2(link, CU_JIT_INPUT_PTX, const_cast<char*>(plain_ptx),
                                 std::strlen(plain_ptx) + 1, "plain", 0, nullptr, nullptr);
  void* made = nullptr;
  std::size_t bytes = 0;
  const CUresult completed = added != CUDA_SUCCESS || s.d.cuLinkComplete == nullptr
                                 ? added
                                 : s.d.cuLinkComplete(link, &made, &bytes);
  if (completed == CUDA_SUCCESS && made != nullptr)
    image.assign(static_cast<const char*>(made), bytes);
  if (s.d.cuLinkDestroy != nullptr) s.d.cuLinkDestroy(link);
  s.need(completed, "cuLinkComplete");
  if (image.empty()) throw unsupported{"the linker made no cubin"};
  return image.data();
}

void load_plain(stage& s) {
  s.own.module = s.load(plain_ptx);
}
void load_library(stage& s) {
  s.use<row_cuLibraryLoadData>(&s.own.library, static_cast<const void*>(plain_ptx),
                               static_cast<CUjit_option*>(nullptr), static_cast<void**>(nullptr),
                               0u, static_cast<CUlibraryOption*>(nullptr),
                               static_cast<void**>(nullptr), 0u);
}

void loading(catalogue& c) {
  auto& ptx = c.add("module/cuModuleLoadData/ptx", "a module of PTX", [](stage& s) {
    s.measured<row_cuModuleLoadData>(&s.own.module, static_cast<const void*>(plain_ptx));
  });
  ptx.quick = true;
  auto& ex = c.add("module/cuModuleLoadDataEx/ptx", "a module of PTX", [](stage& s) {
    s.measured<row_cuModuleLoadDataEx>(&s.own.module, static_cast<const void*>(plain_ptx), 0u,
                                       static_cast<CUjit_option*>(nullptr),
                                       static_cast<void**>(nullptr));
  });
  ex.busy = one_stream;
  auto& binary = c.add("module/cuModuleLoadData/cubin", "a module of machine code",
                       [](stage& s) { s.measured<row_cuModuleLoadData>(&s.own.module, cubin(s)); });
  binary.prepare = [](stage& s) { cubin(s); };
  auto& file = c.add("module/cuModuleLoad/ptx", "a module from a file", [](stage& s) {
    s.measured<row_cuModuleLoad>(&s.own.module, static_cast<const char*>(s.own.page));
  });
  file.prepare = [](stage& s) {
    char* path = ::strdup("/tmp/hostwait-probe-XXXXXX");
    s.own.page = path;
    const int fd = ::mkstemp(path);
    const auto n = static_cast<ssize_t>(std::strlen(plain_ptx));
    const bool written = fd >= 0 && ::write(fd, plain_ptx, std::strlen(plain_ptx)) == n;
    if (fd >= 0) ::close(fd);
    if (!written) throw unsupported{"no file in /tmp"};
  };
  file.cleanup = [](stage& s) {
    if (s.own.page) ::unlink(static_cast<const char*>(s.own.page));
  };
  file.busy = one_stream;
  auto& unload =
      c.add("module/cuModuleUnload/idle", "a module without running kernels", [](stage& s) {
        if (s.measured<row_cuModuleUnload>(s.own.module) == CUDA_SUCCESS) s.own.module = nullptr;
      });
  unload.prepare = load_plain;
  unload.quick = true;
  auto& running =
      c.add("module/cuModuleUnload/running", "the module of the running kernel", [](stage& s) {
        if (s.measured<row_cuModuleUnload>(s.own.module) == CUDA_SUCCESS) s.own.module = nullptr;
      });
  running.prepare = [](stage& s) { s.own.module = s.load(spin_ptx); };
  running.occupy = [](stage& s, std::uint64_t ns) {
    const CUfunction usual = s.spin;
    s.spin = s.function(s.own.module, "spin");
    s.keep_busy(s.nonblocking, ns);
    s.spin = usual;
  };
  running.busy = one_stream;
}

void libraries(catalogue& c) {
  const auto add = [&c](const char* id, const char* what, std::function<void(stage&)> prepare,
                        std::function<void(stage&)> make) {
    auto& e = c.add(std::string("module/") + id, what, std::move(make));
    e.prepare = std::move(prepare);
    e.busy = one_stream;
  };
  add("cuLibraryLoadData/ptx", "a library of PTX", nullptr, [](stage& s) {
    s.measured<row_cuLibraryLoadData>(
        &s.own.library, static_cast<const void*>(plain_ptx), static_cast<CUjit_option*>(nullptr),
        static_cast<void**>(nullptr), 0u, static_cast<CUlibraryOption*>(nullptr),
        static_cast<void**>(nullptr), 0u);
  });
  add("cuLibraryGetKernel/first", "first kernel of a library", load_library,
      [](stage& s) { s.measured<row_cuLibraryGetKernel>(&s.own.kernel, s.own.library, "plain"); });
  add(
      "cuKernelGetFunction/first", "first use in this context",
      [](stage& s) {
        load_library(s);
        s.use<row_cuLibraryGetKernel>(&s.own.kernel, s.own.library, "plain");
      },
      [](stage& s) { s.measured<row_cuKernelGetFunction>(&s.own.function, s.own.kernel); });
  add("cuLibraryGetModule/first", "the library's module", load_library, [](stage& s) {
    static CUmodule module;
    s.measured<row_cuLibraryGetModule>(&module, s.own.library);
  });
  add("cuLibraryGetGlobal/first", "a variable of a library", load_library, [](stage& s) {
    s.measured<row_cuLibraryGetGlobal>(&s.own.second, &s.own.bytes, s.own.library, "cell");
    s.own.second = 0;  // it belongs to the library
  });
  add(
      "cuLibraryUnload/idle", "a library whose kernel was used",
      [](stage& s) {
        load_library(s);
        s.use<row_cuLibraryGetKernel>(&s.own.kernel, s.own.library, "plain");
        s.use<row_cuKernelGetFunction>(&s.own.function, s.own.kernel);
      },
      [](stage& s) {
        if (s.measured<row_cuLibraryUnload>(s.own.library) == CUDA_SUCCESS) s.own.library = nullptr;
      });
}

void used_before(catalogue& c) {
  struct call {
    const char* name;
    void (*make)(stage&);
  };
  static const call calls[] = {
      {"cuFuncGetAttribute",
       [](stage& s) {
         static int value;
         s.measured<row_cuFuncGetAttribute>(&value, CU_FUNC_ATTRIBUTE_NUM_REGS, s.tiny);
       }},
      {"cuFuncSetAttribute",
       [](stage& s) {
         s.measured<row_cuFuncSetAttribute>(s.tiny,
                                            CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT, 50);
       }},
      {"cuModuleGetFunction",
       [](stage& s) {
         s.measured<row_cuModuleGetFunction>(&s.own.function, s.base_module, "tiny");
       }},
      {"cuOccupancyMaxActiveBlocksPerMultiprocessor", [](stage& s) {
         static int blocks;
         s.measured<row_cuOccupancyMaxActiveBlocksPerMultiprocessor>(&blocks, s.tiny, 32,
                                                                     std::size_t{0});
       }}};
  for (const call& k : calls)
    c.add(std::string("module/") + k.name + "/used_before", "the kernel has run before", k.make)
        .busy = one_stream;
}

// Each in a process of its own, lazy and eager.
void first_use(catalogue& c) {
  struct call {
    const char* name;
    const char* what;
    void (*prepare)(stage&);
    void (*make)(stage&);
    bool eager_too;
  };
  static const call calls[] = {
      {"cuLaunchKernel/plain", "first launch of a small kernel",
       [](stage& s) {
         load_plain(s);
         s.own.function = s.function(s.own.module, "plain");
       },
       [](stage& s) {
         s.function_is_new();
         s.measured<row_cuLaunchKernel>(s.own.function, 1u, 1u, 1u, 1u, 1u, 1u, 0u,
                                        s.other_nonblocking, static_cast<void**>(nullptr),
                                        static_cast<void**>(nullptr));
       },
       true},
      {"cuLaunchKernel/local_stack", "first launch that needs more local memory",
       [](stage& s) {
         s.own.module = s.load(local_stack_ptx);
         s.own.function = s.function(s.own.module, "local_stack");
       },
       [](stage& s) {
         static std::uint64_t out = 0;
         static unsigned index = 7;
         void* parameters[] = {&out, &index};
         s.function_is_new();
         s.measured<row_cuLaunchKernel>(s.own.function, 1u, 1u, 1u, 1u, 1u, 1u, 0u,
                                        s.other_nonblocking, parameters,
                                        static_cast<void**>(nullptr));
       },
       true},
      {"cuLaunchKernel/printing", "first launch of a kernel that prints",
       [](stage& s) {
         s.own.module = s.load(printing_ptx);
         s.own.function = s.function(s.own.module, "printing");
       },
       [](stage& s) {
         s.function_is_new();
         s.measured<row_cuLaunchKernel>(s.own.function, 1u, 1u, 1u, 1u, 1u, 1u, 0u,
                                        s.other_nonblocking, static_cast<void**>(nullptr),
                                        static_cast<void**>(nullptr));
       },
       false},
      {"cuModuleLoadData/ptx", "first module of this context", [](stage&) {},
       [](stage& s) {
         s.measured<row_cuModuleLoadData>(&s.own.module, static_cast<const void*>(plain_ptx));
       },
       true},
      {"cuModuleGetFunction/plain", "first kernel of a module", load_plain,
       [](stage& s) {
         s.measured<row_cuModuleGetFunction>(&s.own.function, s.own.module, "plain");
       },
       true},
      {"cuModuleGetGlobal_v2/cell", "first variable of a module", load_plain,
       [](stage& s) {
         static CUdeviceptr at;
         s.measured<row_cuModuleGetGlobal_v2>(&at, &s.own.bytes, s.own.module, "cell");
       },
       false},
      {"cuFuncGetAttribute/plain", "first question about a kernel",
       [](stage& s) {
         load_plain(s);
         s.own.function = s.function(s.own.module, "plain");
       },
       [](stage& s) {
         static int value;
         s.measured<row_cuFuncGetAttribute>(&value, CU_FUNC_ATTRIBUTE_NUM_REGS, s.own.function);
       },
       false},
      {"cuFuncLoad/plain", "loading of one kernel",
       [](stage& s) {
         load_plain(s);
         s.own.function = s.function(s.own.module, "plain");
       },
       [](stage& s) { s.measured<row_cuFuncLoad>(s.own.function); }, false},
      {"cuMemAllocAsync/first", "first use of the default pool", [](stage&) {},
       [](stage& s) {
         s.measured<row_cuMemAllocAsync>(&s.own.memory, std::size_t{1} << 20, s.other_nonblocking);
       },
       false}};
  for (bool eager : {false, true})
    for (const call& k : calls) {
      if (eager && !k.eager_too) continue;
      auto& e = c.add(std::string(eager ? "first_eager/" : "first_lazy/") + k.name, k.what, k.make);
      e.prepare = k.prepare;
      e.fresh = true;
      e.environment = {{"CUDA_MODULE_LOADING", eager ? "EAGER" : "LAZY"}};
      e.busy = one_stream;
      e.quick = !eager && &k == &calls[1];
    }
  auto& again = c.add("launch/cuLaunchKernel/printing_again/other",
                      "a kernel that prints, not for the first time", [](stage& s) {
                        s.measured<row_cuLaunchKernel>(
                            s.own.function, 1u, 1u, 1u, 1u, 1u, 1u, 0u, s.other_nonblocking,
                            static_cast<void**>(nullptr), static_cast<void**>(nullptr));
                      });
  again.prepare = [](stage& s) {
    s.own.module = s.load(printing_ptx);
    s.own.function = s.function(s.own.module, "printing");
    s.launch(s.own.function, s.other_nonblocking);
  };
  again.busy = one_stream;
}

}  // namespace

void add_modules(catalogue& c) {
  loading(c);
  libraries(c);
  used_before(c);
  first_use(c);
}

}  // namespace hostwait::probe
