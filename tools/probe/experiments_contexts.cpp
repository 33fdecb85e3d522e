// SPDX-License-Identifier: Apache-2.0
// Copyright The hostwait authors
// Contexts, limits, peer access, green contexts, settings.
#include "kernels.hpp"
#include "stage.hpp"

namespace hostwait::probe {

namespace {

using kinds = std::vector<stream_kind>;
const kinds one_stream = {stream_kind::nonblocking};

void limits(catalogue& c) {
  struct which {
    const char* name;
    CUlimit limit;
    std::size_t more;
  };
  static const which all[] = {{"stack", CU_LIMIT_STACK_SIZE, 1024},
                              {"printf", CU_LIMIT_PRINTF_FIFO_SIZE, 1 << 20},
                              {"heap", CU_LIMIT_MALLOC_HEAP_SIZE, 1 << 20},
                              {"l2_fetch", CU_LIMIT_MAX_L2_FETCH_GRANULARITY, 0}};
  for (const which& w : all) {
    auto& e =
        c.add(std::string("context/cuCtxSetLimit/") + w.name, "a limit, larger than now",
              [&w](stage& s) { s.measured<row_cuCtxSetLimit>(w.limit, s.own.bytes + w.more); });
    e.prepare = [&w](stage& s) {
      s.use_other("cuCtxGetLimit", s.d.cuCtxGetLimit, &s.own.bytes, w.limit);
    };
    e.quick = &w == &all[0];
  }
}

void settings(catalogue& c) {
  c.add("context/cuCtxSetCacheConfig/-", "preferred cache", [](stage& s) {
    s.measured_other("cuCtxSetCacheConfig", s.d.cuCtxSetCacheConfig, CU_FUNC_CACHE_PREFER_L1);
  });
  c.add("context/cuFuncSetCacheConfig/-", "preferred cache of a kernel", [](stage& s) {
    s.measured_other("cuFuncSetCacheConfig", s.d.cuFuncSetCacheConfig, s.tiny,
                     CU_FUNC_CACHE_PREFER_L1);
  });
  c.add("context/cuCtxResetPersistingL2Cache/-", "persisting lines of the cache",
        [](stage& s) { s.measured<row_cuCtxResetPersistingL2Cache>(); });
  c.add("context/cuProfilerStart/-", "no tool attached",
        [](stage& s) { s.measured<row_cuProfilerStart>(); });
  c.add("context/cuProfilerStop/-", "no tool attached",
        [](stage& s) { s.measured<row_cuProfilerStop>(); });
  c.add("context/cuDevicePrimaryCtxSetFlags_v2/active", "flags of an active context", [](stage& s) {
    unsigned flags = 0;
    int active = 0;
    s.use_other("cuDevicePrimaryCtxGetState", s.d.cuDevicePrimaryCtxGetState, s.device, &flags,
                &active);
    s.measured<row_cuDevicePrimaryCtxSetFlags_v2>(s.device, flags);
  });
  auto& memops = c.add("context/cuPointerSetAttribute/sync_memops",
                       "while a copy waits behind the kernel", [](stage& s) {
                         s.use<row_cuMemcpyDtoDAsync_v2>(s.own.memory, s.device_block(),
                                                         std::size_t{1} << 20, s.busy_stream());
                         const unsigned on = 1;
                         s.measured<row_cuPointerSetAttribute>(
                             &on, CU_POINTER_ATTRIBUTE_SYNC_MEMOPS, s.own.memory);
                       });
  memops.prepare = [](stage& s) {
    s.device_block();
    s.use<row_cuMemAlloc_v2>(&s.own.memory, std::size_t{1} << 20);
  };
  memops.quick = true;
}

void make_context(stage& s) {
  s.use_other("cuCtxCreate_v4", s.d.cuCtxCreate_v4, &s.own.context, nullptr, 0u, s.device);
  s.use_other("cuCtxSetCurrent", s.d.cuCtxSetCurrent, s.context);
}

// A kernel in the second context, which stays another than the current one.
void keep_second_busy(stage& s, std::uint64_t ns) {
  s.use_other("cuCtxPushCurrent_v2", s.d.cuCtxPushCurrent_v2, s.own.context);
  std::string why;
  try {
    const CUmodule module = s.load(spin_ptx);
    const CUfunction usual = s.spin;
    s.spin = s.function(module, "spin");
    try {
      s.keep_busy_untold(stage::legacy, ns);
    } catch (const unsupported& failed) {
      why = failed.why;
    }
    s.spin = usual;
  } catch (const unsupported& failed) {
    why = failed.why;
  }
  CUcontext left = nullptr;
  s.d.cuCtxPopCurrent_v2(&left);
  if (!why.empty()) throw unsupported{why};
}

void contexts(catalogue& c) {
  auto& create = c.add("context/cuCtxCreate_v4/second", "a second context", [](stage& s) {
    s.measured_other("cuCtxCreate_v4", s.d.cuCtxCreate_v4, &s.own.context, nullptr, 0u, s.device);
    s.d.cuCtxSetCurrent(s.context);
  });
  create.busy = one_stream;
  auto& destroy = c.add("context/cuCtxDestroy_v2/idle", "an idle second context", [](stage& s) {
    if (s.measured<row_cuCtxDestroy_v2>(s.own.context) == CUDA_SUCCESS) s.own.context = nullptr;
  });
  destroy.prepare = make_context;
  destroy.busy = one_stream;
  auto& running =
      c.add("context/cuCtxDestroy_v2/running", "the context of the running kernel", [](stage& s) {
        s.own_stream_is(stream_kind::legacy);
        if (s.measured<row_cuCtxDestroy_v2>(s.own.context) == CUDA_SUCCESS) s.own.context = nullptr;
      });
  running.prepare = make_context;
  running.occupy = keep_second_busy;
  running.busy = {stream_kind::legacy};
  running.judged = false;
  running.idle = false;
  // Work of another context: nothing here waits for it.
  auto& other = c.add("context/cuCtxSynchronize/second_busy", "a kernel runs in another context",
                      [](stage& s) { s.measured<row_cuCtxSynchronize>(); });
  other.prepare = make_context;
  other.occupy = keep_second_busy;
  other.busy = {stream_kind::legacy};
  other.judged = false;
  auto& free =
      c.add("context/cuMemFree_v2/second_busy", "a kernel runs in another context", [](stage& s) {
        if (s.measured<row_cuMemFree_v2>(s.own.memory) == CUDA_SUCCESS) s.own.memory = 0;
      });
  free.prepare = [](stage& s) {
    make_context(s);
    s.use<row_cuMemAlloc_v2>(&s.own.memory, std::size_t{1} << 20);
  };
  free.occupy = keep_second_busy;
  free.busy = {stream_kind::legacy};
  free.judged = false;
  for (bool whole : {true, false}) {
    auto& end = c.add(
        whole ? "context/cuDevicePrimaryCtxReset_v2/-" : "context/cuDevicePrimaryCtxRelease_v2/-",
        "the primary context ends", [whole](stage& s) {
          if (whole)
            s.measured<row_cuDevicePrimaryCtxReset_v2>(s.device);
          else
            s.measured<row_cuDevicePrimaryCtxRelease_v2>(s.device);
        });
    end.fresh = true;
    end.busy = one_stream;
  }
}

void make_green(stage& s) {
  CUdevResource all{}, part{};
  CUdevResourceDesc description = nullptr;
  unsigned groups = 1;
  s.use_other("cuDeviceGetDevResource", s.d.cuDeviceGetDevResource, s.device, &all,
              CU_DEV_RESOURCE_TYPE_SM);
  s.use_other("cuDevSmResourceSplitByCount", s.d.cuDevSmResourceSplitByCount, &part, &groups, &all,
              nullptr, 0u, 8u);
  s.use_other("cuDevResourceGenerateDesc", s.d.cuDevResourceGenerateDesc, &description, &part, 1u);
  s.use<row_cuGreenCtxCreate>(&s.own.green, description, s.device,
                              unsigned{CU_GREEN_CTX_DEFAULT_STREAM});
}

void green(catalogue& c) {
  auto& create = c.add("green/cuGreenCtxCreate/-", "a green context", [](stage& s) {
    CUdevResource all{}, part{};
    CUdevResourceDesc description = nullptr;
    unsigned groups = 1;
    s.use_other("cuDeviceGetDevResource", s.d.cuDeviceGetDevResource, s.device, &all,
                CU_DEV_RESOURCE_TYPE_SM);
    s.use_other("cuDevSmResourceSplitByCount", s.d.cuDevSmResourceSplitByCount, &part, &groups,
                &all, nullptr, 0u, 8u);
    s.use_other("cuDevResourceGenerateDesc", s.d.cuDevResourceGenerateDesc, &description, &part,
                1u);
    s.measured<row_cuGreenCtxCreate>(&s.own.green, description, s.device,
                                     unsigned{CU_GREEN_CTX_DEFAULT_STREAM});
  });
  create.busy = one_stream;
  auto& destroy = c.add("green/cuGreenCtxDestroy/idle", "an idle green context", [](stage& s) {
    if (s.measured<row_cuGreenCtxDestroy>(s.own.green) == CUDA_SUCCESS) s.own.green = nullptr;
  });
  destroy.prepare = make_green;
  destroy.busy = one_stream;
  // The kernel runs in a stream of the green context, the primary context is current.
  const auto occupy = [](stage& s, std::uint64_t ns) {
    s.use_other("cuGreenCtxStreamCreate", s.d.cuGreenCtxStreamCreate, &s.own.stream, s.own.green,
                unsigned{CU_STREAM_NON_BLOCKING}, 0);
    s.keep_busy_by_kernel(s.own.kernel, s.own.stream, ns);
  };
  const auto prepare = [](stage& s) {
    make_green(s);
    s.use<row_cuLibraryLoadData>(&s.own.library, static_cast<const void*>(spin_ptx),
                                 static_cast<CUjit_option*>(nullptr), static_cast<void**>(nullptr),
                                 0u, static_cast<CUlibraryOption*>(nullptr),
                                 static_cast<void**>(nullptr), 0u);
    s.use<row_cuLibraryGetKernel>(&s.own.kernel, s.own.library, "spin");
    s.use<row_cuMemAlloc_v2>(&s.own.memory, std::size_t{1} << 20);
  };
  struct call {
    const char* name;
    void (*make)(stage&);
  };
  static const call calls[] = {
      {"cuCtxSynchronize", [](stage& s) { s.measured<row_cuCtxSynchronize>(); }},
      {"cuMemFree_v2",
       [](stage& s) {
         if (s.measured<row_cuMemFree_v2>(s.own.memory) == CUDA_SUCCESS) s.own.memory = 0;
       }},
      {"cuStreamSynchronize_legacy",
       [](stage& s) { s.measured<row_cuStreamSynchronize>(stage::legacy); }}};
  for (const call& k : calls) {
    auto& e = c.add(std::string("green/") + k.name + "/green_busy",
                    "the kernel runs in a green context", k.make);
    e.prepare = prepare;
    e.occupy = occupy;
    e.busy = one_stream;
    e.judged = false;
  }
}

void peer_access(catalogue& c) {
  const auto with_other = [](stage& s) {
    s.use_other("cuDevicePrimaryCtxRetain", s.d.cuDevicePrimaryCtxRetain, &s.own.context,
                s.device == 0 ? 1 : 0);
  };
  const auto without = [](stage& s) {
    if (s.own.context) s.d.get<row_cuCtxDisablePeerAccess>()(s.own.context);
    if (s.own.context) s.d.get<row_cuDevicePrimaryCtxRelease_v2>()(s.device == 0 ? 1 : 0);
    s.own.context = nullptr;
  };
  auto& enable = c.add("context/cuCtxEnablePeerAccess/-", "access to another device",
                       [](stage& s) { s.measured<row_cuCtxEnablePeerAccess>(s.own.context, 0u); });
  enable.prepare = with_other;
  auto& disable = c.add("context/cuCtxDisablePeerAccess/-", "access to another device",
                        [](stage& s) { s.measured<row_cuCtxDisablePeerAccess>(s.own.context); });
  disable.prepare = [with_other](stage& s) {
    with_other(s);
    s.use<row_cuCtxEnablePeerAccess>(s.own.context, 0u);
  };
  for (experiment* e : {&enable, &disable}) {
    e->cleanup = without;
    e->devices = 2;
  }
}

}  // namespace

void add_contexts(catalogue& c) {
  limits(c);
  settings(c);
  contexts(c);
  green(c);
  peer_access(c);
}

}  // namespace hostwait::probe
