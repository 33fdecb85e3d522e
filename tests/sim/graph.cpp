// SPDX-License-Identifier: Apache-2.0
// Copyright The hostwait authors
// Graphs: creation, nodes, edges and questions about them.
#include <algorithm>
#include <cstring>

#include "capture.hpp"
#include "copy.hpp"
#include "graph.hpp"
#include "launch.hpp"

namespace hostwait::sim {

graph* find_graph(CUgraph handle) {
  auto* g = reinterpret_cast<graph*>(handle);
  return g && g->magic == graph::right_magic ? g : nullptr;
}

graph_node* find_node(CUgraphNode handle) {
  auto* n = reinterpret_cast<graph_node*>(handle);
  return n && n->magic == graph_node::right_magic ? n : nullptr;
}

namespace {

CUgraphNode handle_of(graph_node* n) {
  return reinterpret_cast<CUgraphNode>(n);
}

CUresult create(CUgraph* out) {
  if (!out) return CUDA_ERROR_INVALID_VALUE;
  *out = reinterpret_cast<CUgraph>(kept(new graph));
  return CUDA_SUCCESS;
}

CUresult destroy(CUgraph handle) {
  graph* g = find_graph(handle);
  if (!g) return CUDA_ERROR_INVALID_VALUE;
  g->magic = 0;  // leaked with its nodes: executable graphs and stale handles name them
  for (auto& node : g->nodes) node->magic = 0;
  return CUDA_SUCCESS;
}

// The dependencies of a new node, and the graph it belongs to.
struct place {
  CUgraphNode* out;
  CUgraph into;
  const CUgraphNode* after;
  size_t count;
};

CUresult add(place where, CUgraphNodeType type, work&& item, graph* child = nullptr) {
  graph* g = find_graph(where.into);
  if (!g || !where.out || (where.count && !where.after)) return CUDA_ERROR_INVALID_VALUE;
  std::vector<graph_node*> after;
  for (size_t i = 0; i < where.count; ++i) {
    graph_node* before = find_node(where.after[i]);
    if (!before || before->owner != g) return CUDA_ERROR_INVALID_VALUE;
    after.push_back(before);
  }
  lock held(q().mutex);
  graph_node* node = add_node(g, type, std::move(item), std::move(after));
  node->child = child;
  *where.out = handle_of(node);
  return CUDA_SUCCESS;
}

CUresult add_kernel(place where, CUfunction f, void** parameters, void** extra) {
  work item;
  if (CUresult result = kernel_work(f, parameters, extra, &item)) return result;
  return add(where, CU_GRAPH_NODE_TYPE_KERNEL, std::move(item));
}

CUresult add_memcpy(place where, const CUDA_MEMCPY3D* p) {
  copy_shape shape;
  if (CUresult result = describe(p, &shape)) return result;
  work item;
  item.busy_ns = copy_busy_ns(shape.width * shape.height * shape.depth);
  item.run = [shape] { move_bytes(shape); };
  return add(where, CU_GRAPH_NODE_TYPE_MEMCPY, std::move(item));
}

CUresult add_memset(place where, const CUDA_MEMSET_NODE_PARAMS* p) {
  if (!p || (p->elementSize != 1 && p->elementSize != 2 && p->elementSize != 4))
    return CUDA_ERROR_INVALID_VALUE;
  work item;
  item.run = [p = *p] {
    for (size_t y = 0; y < p.height; ++y)
      for (size_t x = 0; x < p.width; ++x)
        memcpy(reinterpret_cast<char*>(p.dst) + y * p.pitch + x * p.elementSize, &p.value,
               p.elementSize);
  };
  return add(where, CU_GRAPH_NODE_TYPE_MEMSET, std::move(item));
}

CUresult add_host(place where, const CUDA_HOST_NODE_PARAMS* p) {
  if (!p || !p->fn) return CUDA_ERROR_INVALID_VALUE;
  work item;
  item.by_worker = true;
  item.run = host_function([fn = p->fn, user = p->userData] { fn(user); });
  return add(where, CU_GRAPH_NODE_TYPE_HOST, std::move(item));
}

CUresult add_child(place where, CUgraph child) {
  graph* g = find_graph(child);
  return g ? add(where, CU_GRAPH_NODE_TYPE_GRAPH, {}, g) : CUDA_ERROR_INVALID_VALUE;
}

CUresult add_any(place where, CUgraphNodeParams* p) {
  if (!p) return CUDA_ERROR_INVALID_VALUE;
  switch (p->type) {
    case CU_GRAPH_NODE_TYPE_EMPTY:
      return add(where, p->type, {});
    case CU_GRAPH_NODE_TYPE_KERNEL:
      return add_kernel(where, p->kernel.func, p->kernel.kernelParams, p->kernel.extra);
    case CU_GRAPH_NODE_TYPE_MEMCPY:
      return add_memcpy(where, &p->memcpy.copyParams);
    default:
      return CUDA_ERROR_NOT_SUPPORTED;
  }
}

CUresult change_edges(CUgraph handle, const CUgraphNode* from, const CUgraphNode* to, size_t count,
                      bool add_them) {
  if (!find_graph(handle) || (count && (!from || !to))) return CUDA_ERROR_INVALID_VALUE;
  lock held(q().mutex);
  for (size_t i = 0; i < count; ++i) {
    graph_node* before = find_node(from[i]);
    graph_node* node = find_node(to[i]);
    if (!before || !node || before == node) return CUDA_ERROR_INVALID_VALUE;
    auto found = std::find(node->after.begin(), node->after.end(), before);
    if (add_them == (found != node->after.end())) return CUDA_ERROR_INVALID_VALUE;
    if (add_them)
      node->after.push_back(before);
    else
      node->after.erase(found);
  }
  return CUDA_SUCCESS;
}

// The usual two-step answer: the number alone, or as many handles as there is room for.
CUresult answer(const std::vector<graph_node*>& nodes, CUgraphNode* out, size_t* count) {
  if (!count) return CUDA_ERROR_INVALID_VALUE;
  if (out)
    for (size_t i = 0; i < *count; ++i) out[i] = i < nodes.size() ? handle_of(nodes[i]) : nullptr;
  *count = out ? std::min(*count, nodes.size()) : nodes.size();
  return CUDA_SUCCESS;
}

template <class Wanted>
CUresult select_nodes(CUgraph handle, CUgraphNode* out, size_t* count, Wanted wanted) {
  graph* g = find_graph(handle);
  if (!g) return CUDA_ERROR_INVALID_VALUE;
  lock held(q().mutex);
  std::vector<graph_node*> nodes;
  for (auto& node : g->nodes)
    if (wanted(node.get())) nodes.push_back(node.get());
  return answer(nodes, out, count);
}

CUresult dependencies(CUgraphNode handle, CUgraphNode* out, size_t* count) {
  graph_node* node = find_node(handle);
  if (!node) return CUDA_ERROR_INVALID_VALUE;
  lock held(q().mutex);
  return answer(node->after, out, count);
}

CUresult edges(CUgraph handle, CUgraphNode* from, CUgraphNode* to, size_t* count) {
  graph* g = find_graph(handle);
  if (!g || !count) return CUDA_ERROR_INVALID_VALUE;
  lock held(q().mutex);
  size_t n = 0;
  for (auto& node : g->nodes)
    for (graph_node* before : node->after) {
      if (from && to && n < *count) {
        from[n] = handle_of(before);
        to[n] = handle_of(node.get());
      }
      ++n;
    }
  *count = from && to ? std::min(*count, n) : n;
  return CUDA_SUCCESS;
}

// Edges have no data here: all of them are plain.
CUresult plain(CUgraphEdgeData* data, const size_t* count, CUresult result) {
  if (!result && data) std::fill_n(data, *count, CUgraphEdgeData{});
  return result;
}

CUresult node_type(CUgraphNode handle, CUgraphNodeType* out) {
  graph_node* node = find_node(handle);
  if (!node || !out) return CUDA_ERROR_INVALID_VALUE;
  *out = node->type;
  return CUDA_SUCCESS;
}

}  // namespace
}  // namespace hostwait::sim

using namespace hostwait::sim;

#define SIM_PLACE CUgraphNode *out, CUgraph g, const CUgraphNode *after, size_t count
#define SIM_HERE \
  { out, g, after, count }
SIM_API(cuGraphCreate, (CUgraph * out, unsigned), create(out))
SIM_API(cuGraphDestroy, (CUgraph g), destroy(g))
SIM_API(cuGraphAddEmptyNode, (SIM_PLACE), add(SIM_HERE, CU_GRAPH_NODE_TYPE_EMPTY, {}))
SIM_API(cuGraphAddKernelNode, (SIM_PLACE, const CUDA_KERNEL_NODE_PARAMS_v1* p),
        p ? add_kernel(SIM_HERE, p->func, p->kernelParams, p->extra) : CUDA_ERROR_INVALID_VALUE)
SIM_API(cuGraphAddKernelNode_v2, (SIM_PLACE, const CUDA_KERNEL_NODE_PARAMS* p),
        p ? add_kernel(SIM_HERE, p->func, p->kernelParams, p->extra) : CUDA_ERROR_INVALID_VALUE)
SIM_API(cuGraphAddMemcpyNode, (SIM_PLACE, const CUDA_MEMCPY3D* p, CUcontext),
        add_memcpy(SIM_HERE, p))
SIM_API(cuGraphAddMemsetNode, (SIM_PLACE, const CUDA_MEMSET_NODE_PARAMS* p, CUcontext),
        add_memset(SIM_HERE, p))
SIM_API(cuGraphAddHostNode, (SIM_PLACE, const CUDA_HOST_NODE_PARAMS* p), add_host(SIM_HERE, p))
SIM_API(cuGraphAddChildGraphNode, (SIM_PLACE, CUgraph child), add_child(SIM_HERE, child))
SIM_API(cuGraphAddNode, (SIM_PLACE, CUgraphNodeParams* p), add_any(SIM_HERE, p))
SIM_API(cuGraphAddNode_v2,
        (CUgraphNode * out, CUgraph g, const CUgraphNode* after, const CUgraphEdgeData*,
         size_t count, CUgraphNodeParams* p),
        add_any(SIM_HERE, p))
SIM_API(cuGraphAddDependencies,
        (CUgraph g, const CUgraphNode* from, const CUgraphNode* to, size_t count),
        change_edges(g, from, to, count, true))
SIM_API(cuGraphAddDependencies_v2,
        (CUgraph g, const CUgraphNode* from, const CUgraphNode* to, const CUgraphEdgeData*,
         size_t count),
        change_edges(g, from, to, count, true))
SIM_API(cuGraphRemoveDependencies,
        (CUgraph g, const CUgraphNode* from, const CUgraphNode* to, size_t count),
        change_edges(g, from, to, count, false))
SIM_API(cuGraphRemoveDependencies_v2,
        (CUgraph g, const CUgraphNode* from, const CUgraphNode* to, const CUgraphEdgeData*,
         size_t count),
        change_edges(g, from, to, count, false))
SIM_API(cuGraphGetNodes, (CUgraph g, CUgraphNode* out, size_t* count),
        select_nodes(g, out, count, [](graph_node*) { return true; }))
SIM_API(cuGraphGetRootNodes, (CUgraph g, CUgraphNode* out, size_t* count),
        select_nodes(g, out, count, [](graph_node* n) { return n->after.empty(); }))
SIM_API(cuGraphGetEdges, (CUgraph g, CUgraphNode* from, CUgraphNode* to, size_t* count),
        edges(g, from, to, count))
SIM_API(cuGraphGetEdges_v2,
        (CUgraph g, CUgraphNode* from, CUgraphNode* to, CUgraphEdgeData* data, size_t* count),
        plain(data, count, edges(g, from, to, count)))
SIM_API(cuGraphNodeGetDependencies_v2,
        (CUgraphNode n, CUgraphNode* out, CUgraphEdgeData* data, size_t* count),
        plain(data, count, dependencies(n, out, count)))
SIM_API(cuGraphNodeGetType, (CUgraphNode n, CUgraphNodeType* out), node_type(n, out))
SIM_API(cuGraphNodeGetDependencies, (CUgraphNode n, CUgraphNode* out, size_t* count),
        dependencies(n, out, count))
