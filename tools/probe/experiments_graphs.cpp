// SPDX-License-Identifier: Apache-2.0
// Copyright The hostwait authors
// Graphs: instantiate, upload, launch, launch again while running, update, destroy.
#include "kernels.hpp"
#include "stage.hpp"

namespace hostwait::probe {

namespace {

constexpr std::size_t mib = 1 << 20;

void empty_graph(stage& s) {
  s.use_other("cuGraphCreate", s.d.cuGraphCreate, &s.own.graph, 0u);
}

CUgraphNode add_kernel(stage& s, CUfunction f, void** parameters) {
  CUDA_KERNEL_NODE_PARAMS_v2 p{};
  p.func = f;
  p.gridDimX = p.gridDimY = p.gridDimZ = p.blockDimX = p.blockDimY = p.blockDimZ = 1;
  p.kernelParams = parameters;
  CUgraphNode node = nullptr;
  s.use_other("cuGraphAddKernelNode_v2", s.d.cuGraphAddKernelNode_v2, &node, s.own.graph, nullptr,
              std::size_t{0}, &p);
  return node;
}

void tiny_graph(stage& s) {
  empty_graph(s);
  s.own.node = add_kernel(s, s.tiny, nullptr);
}

void instantiate(stage& s) {
  s.use<row_cuGraphInstantiateWithFlags>(&s.own.exec, s.own.graph, 0ull);
}

void ready(stage& s) {
  tiny_graph(s);
  instantiate(s);
}
void uploaded(stage& s) {
  ready(s);
  s.use<row_cuGraphLaunch>(s.own.exec, s.other_nonblocking);
}

void copy_node(stage& s, bool upload) {
  CUDA_MEMCPY3D c{};
  c.srcMemoryType = upload ? CU_MEMORYTYPE_HOST : CU_MEMORYTYPE_DEVICE;
  c.dstMemoryType = upload ? CU_MEMORYTYPE_DEVICE : CU_MEMORYTYPE_HOST;
  c.srcHost = c.dstHost = s.pageable_block();
  c.srcDevice = c.dstDevice = s.device_block();
  c.srcPitch = c.dstPitch = mib;
  c.srcHeight = c.dstHeight = 1;
  c.WidthInBytes = mib;
  c.Height = c.Depth = 1;
  empty_graph(s);
  s.use_other("cuGraphAddMemcpyNode", s.d.cuGraphAddMemcpyNode, &s.own.node, s.own.graph, nullptr,
              std::size_t{0}, &c, s.context);
  instantiate(s);
}

void host_node(stage& s) {
  CUDA_HOST_NODE_PARAMS p{};
  p.fn = [](void*) {};
  empty_graph(s);
  s.use_other("cuGraphAddHostNode", s.d.cuGraphAddHostNode, &s.own.node, s.own.graph, nullptr,
              std::size_t{0}, &p);
  instantiate(s);
}

void memory_nodes(stage& s) {
  CUDA_MEM_ALLOC_NODE_PARAMS p{};
  p.poolProps.allocType = CU_MEM_ALLOCATION_TYPE_PINNED;
  p.poolProps.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
  p.poolProps.location.id = s.device;
  p.bytesize = 64 * mib;
  empty_graph(s);
  CUgraphNode take = nullptr;
  s.use_other("cuGraphAddMemAllocNode", s.d.cuGraphAddMemAllocNode, &take, s.own.graph, nullptr,
              std::size_t{0}, &p);
  s.use_other("cuGraphAddMemFreeNode", s.d.cuGraphAddMemFreeNode, &s.own.node, s.own.graph, &take,
              std::size_t{1}, p.dptr);
  instantiate(s);
}

// The kernel runs inside the graph that is launched again, updated or destroyed.
void graph_that_spins(stage& s) {
  static std::uint64_t ns, flags;
  ns = s.own.bytes;  // set by occupy
  flags = 0;
  void* parameters[] = {&ns, &flags};
  empty_graph(s);
  s.own.node = add_kernel(s, s.spin, parameters);
  instantiate(s);
}

void launches(catalogue& c) {
  struct graph {
    const char* name;
    void (*make)(stage&);
    bool other;
  };
  static const graph graphs[] = {
      {"uploaded/same", uploaded, false},
      {"uploaded/other", uploaded, true},
      {"first/other", ready, true},
      {"pageable_download/same", [](stage& s) { copy_node(s, false); }, false},
      {"pageable_upload/same", [](stage& s) { copy_node(s, true); }, false},
      {"host_node/same", host_node, false},
      {"memory_nodes/other", memory_nodes, true}};
  for (const graph& g : graphs) {
    auto& e =
        c.add(std::string("graph/cuGraphLaunch/") + g.name, "launch of a graph", [&g](stage& s) {
          s.measured<row_cuGraphLaunch>(s.own.exec,
                                        g.other ? s.other_nonblocking : s.busy_stream());
        });
    e.prepare = g.make;
    e.quick = &g == &graphs[1];
  }
  auto& legacy = c.add("graph/cuGraphLaunch/uploaded/legacy", "launch on the legacy stream",
                       [](stage& s) { s.measured<row_cuGraphLaunch>(s.own.exec, stage::legacy); });
  legacy.prepare = uploaded;
  for (bool same : {true, false}) {
    auto& upload = c.add(std::string("graph/cuGraphUpload/first/") + (same ? "same" : "other"),
                         "upload of a graph", [same](stage& s) {
                           s.measured<row_cuGraphUpload>(
                               s.own.exec, same ? s.busy_stream() : s.other_nonblocking);
                         });
    upload.prepare = ready;
  }
}

void while_running(catalogue& c) {
  struct call {
    const char* id;
    const char* what;
    void (*make)(stage&);
  };
  static const call calls[] = {
      {"graph/cuGraphLaunch/running/other", "the same graph runs in another stream",
       [](stage& s) { s.measured<row_cuGraphLaunch>(s.own.exec, s.other_nonblocking); }},
      {"graph/cuGraphExecUpdate_v2/running", "update while it runs",
       [](stage& s) {
         CUgraphExecUpdateResultInfo info{};
         s.measured_other("cuGraphExecUpdate_v2", s.d.cuGraphExecUpdate_v2, s.own.exec, s.own.graph,
                          &info);
       }},
      {"graph/cuGraphExecKernelNodeSetParams_v2/running", "new parameters while it runs",
       [](stage& s) {
         std::uint64_t ns = 1000, flags = 0;
         void* parameters[] = {&ns, &flags};
         CUDA_KERNEL_NODE_PARAMS_v2 p{};
         p.func = s.spin;
         p.gridDimX = p.gridDimY = p.gridDimZ = p.blockDimX = p.blockDimY = p.blockDimZ = 1;
         p.kernelParams = parameters;
         s.measured_other("cuGraphExecKernelNodeSetParams_v2",
                          s.d.cuGraphExecKernelNodeSetParams_v2, s.own.exec, s.own.node, &p);
       }},
      {"graph/cuGraphDestroy/running", "the graph of the running executable",
       [](stage& s) {
         if (s.measured_other("cuGraphDestroy", s.d.cuGraphDestroy, s.own.graph) == CUDA_SUCCESS)
           s.own.graph = nullptr;
       }},
      {"graph/cuGraphExecDestroy/running", "the running executable", [](stage& s) {
         if (s.measured_other("cuGraphExecDestroy", s.d.cuGraphExecDestroy, s.own.exec) ==
             CUDA_SUCCESS)
           s.own.exec = nullptr;
       }}};
  for (const call& k : calls) {
    auto& e = c.add(k.id, k.what, k.make);
    e.idle = false;
    e.busy = {stream_kind::nonblocking};
    e.prepare = [](stage& s) {
      s.own.bytes = s.kernel_ns();
      graph_that_spins(s);
    };
    e.occupy = [](stage& s, std::uint64_t) { s.keep_busy_by_graph(s.own.exec, s.busy_stream()); };
  }
}

void instantiation(catalogue& c) {
  auto& flags = c.add("graph/cuGraphInstantiateWithFlags/kernel", "kernels loaded", [](stage& s) {
    s.measured<row_cuGraphInstantiateWithFlags>(&s.own.exec, s.own.graph, 0ull);
  });
  flags.prepare = tiny_graph;
  flags.quick = true;
  auto& upload = c.add("graph/cuGraphInstantiateWithParams/upload", "with upload to an idle stream",
                       [](stage& s) {
                         CUDA_GRAPH_INSTANTIATE_PARAMS p{};
                         p.flags = CUDA_GRAPH_INSTANTIATE_FLAG_UPLOAD;
                         p.hUploadStream = s.other_nonblocking;
                         s.measured<row_cuGraphInstantiateWithParams>(&s.own.exec, s.own.graph, &p);
                       });
  upload.prepare = tiny_graph;
  auto& plain = c.add("graph/cuGraphInstantiateWithParams/plain", "without upload", [](stage& s) {
    CUDA_GRAPH_INSTANTIATE_PARAMS p{};
    s.measured<row_cuGraphInstantiateWithParams>(&s.own.exec, s.own.graph, &p);
  });
  plain.prepare = tiny_graph;
  auto& destroy = c.add("graph/cuGraphExecDestroy/idle", "an idle executable", [](stage& s) {
    if (s.measured_other("cuGraphExecDestroy", s.d.cuGraphExecDestroy, s.own.exec) == CUDA_SUCCESS)
      s.own.exec = nullptr;
  });
  destroy.prepare = ready;
  auto& lazy =
      c.add("graph/cuGraphInstantiateWithFlags/not_loaded", "kernels not loaded yet", [](stage& s) {
        s.measured<row_cuGraphInstantiateWithFlags>(&s.own.exec, s.own.graph, 0ull);
      });
  lazy.prepare = [](stage& s) {
    s.own.module = s.load(plain_ptx);
    empty_graph(s);
    add_kernel(s, s.function(s.own.module, "plain"), nullptr);
  };
  lazy.fresh = true;
  lazy.environment = {{"CUDA_MODULE_LOADING", "LAZY"}};
  lazy.busy = {stream_kind::nonblocking};
}

}  // namespace

void add_graphs(catalogue& c) {
  instantiation(c);
  launches(c);
  while_running(c);
}

}  // namespace hostwait::probe
