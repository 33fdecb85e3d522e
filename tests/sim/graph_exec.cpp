// SPDX-License-Identifier: Apache-2.0
// Copyright The hostwait authors
// Executable graphs: instantiation, launch as one piece of stream work, update, destruction.
#include <algorithm>
#include <thread>

#include "graph.hpp"

namespace hostwait::sim {
namespace {

struct executable {
  static constexpr uint32_t right_magic = 0x48534758;
  uint32_t magic = right_magic;
  unsigned long long flags = 0;
  std::vector<work> steps;  // in an order that respects all edges
};

executable* find_executable(CUgraphExec handle) {
  auto* e = reinterpret_cast<executable*>(handle);
  return e && e->magic == executable::right_magic ? e : nullptr;
}

// False when the edges form a cycle.
bool visit(graph_node* node, std::vector<graph_node*>& open, std::vector<graph_node*>& done) {
  if (std::find(done.begin(), done.end(), node) != done.end()) return true;
  if (std::find(open.begin(), open.end(), node) != open.end()) return false;
  open.push_back(node);
  for (graph_node* before : node->after)
    if (!visit(before, open, done)) return false;
  done.push_back(node);
  return true;
}

bool flatten(graph* g, std::vector<work>& steps) {
  std::vector<graph_node*> open, done;
  for (auto& node : g->nodes)
    if (!visit(node.get(), open, done)) return false;
  for (graph_node* node : done) {
    if (node->child) {
      if (!flatten(node->child, steps)) return false;
    } else {
      steps.push_back(node->item);
    }
  }
  return true;
}

CUresult instantiate(CUgraphExec* out, CUgraph handle, unsigned long long flags) {
  graph* g = find_graph(handle);
  if (!out || !g) return CUDA_ERROR_INVALID_VALUE;
  auto made = std::make_unique<executable>();
  made->flags = flags;
  lock held(q().mutex);
  if (!flatten(g, made->steps)) return CUDA_ERROR_INVALID_VALUE;
  *out = reinterpret_cast<CUgraphExec>(kept(made.release()));
  return CUDA_SUCCESS;
}

CUresult instantiate(CUgraphExec* out, CUgraph handle, CUDA_GRAPH_INSTANTIATE_PARAMS* p) {
  if (!p) return CUDA_ERROR_INVALID_VALUE;
  CUresult result = instantiate(out, handle, p->flags);
  p->result_out = result ? CUDA_GRAPH_INSTANTIATE_ERROR : CUDA_GRAPH_INSTANTIATE_SUCCESS;
  return result;
}

CUresult launch(CUgraphExec handle, CUstream on, bool per_thread) {
  executable* e = find_executable(handle);
  if (!e) return CUDA_ERROR_INVALID_VALUE;
  CUresult error;
  stream* s = find_stream(on, per_thread, &error);
  if (!s) return error;
  work whole;
  auto steps = std::make_shared<std::vector<work>>(e->steps);
  whole.by_worker = std::any_of(steps->begin(), steps->end(), [](const work& step) {
    return step.by_worker || step.busy_ns || step.ready;
  });
  whole.run = [steps] {
    for (const work& step : *steps) {
      while (step.ready && !step.ready())
        std::this_thread::sleep_for(std::chrono::microseconds(50));
      if (step.busy_ns) std::this_thread::sleep_for(std::chrono::nanoseconds(step.busy_ns));
      if (step.run) step.run();
    }
  };
  return enqueue(s, CU_GRAPH_NODE_TYPE_GRAPH, std::move(whole));
}

CUresult upload(CUgraphExec handle, CUstream on, bool per_thread) {
  CUresult error;
  if (!find_executable(handle)) return CUDA_ERROR_INVALID_VALUE;
  stream* s = find_stream(on, per_thread, &error);
  return s ? enqueue(s, CU_GRAPH_NODE_TYPE_EMPTY, {}) : error;
}

// Launches that are queued keep their own steps, so nothing has to be waited for.
CUresult destroy(CUgraphExec handle) {
  executable* e = find_executable(handle);
  if (!e) return CUDA_ERROR_INVALID_VALUE;
  e->magic = 0;
  e->steps.clear();
  return CUDA_SUCCESS;
}

CUresult update(CUgraphExec handle, CUgraph from, CUgraphExecUpdateResult* status) {
  executable* e = find_executable(handle);
  graph* g = find_graph(from);
  if (!e || !g) return CUDA_ERROR_INVALID_VALUE;
  std::vector<work> steps;
  lock held(q().mutex);
  bool same = flatten(g, steps) && steps.size() == e->steps.size();
  if (status)
    *status = same ? CU_GRAPH_EXEC_UPDATE_SUCCESS : CU_GRAPH_EXEC_UPDATE_ERROR_TOPOLOGY_CHANGED;
  if (!same) return CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE;
  e->steps = std::move(steps);
  return CUDA_SUCCESS;
}

CUresult update(CUgraphExec handle, CUgraph from, CUgraphExecUpdateResultInfo* info) {
  if (!info) return CUDA_ERROR_INVALID_VALUE;
  *info = {};
  return update(handle, from, &info->result);
}

CUresult flags_of(CUgraphExec handle, cuuint64_t* out) {
  executable* e = find_executable(handle);
  if (!e || !out) return CUDA_ERROR_INVALID_VALUE;
  *out = e->flags;
  return CUDA_SUCCESS;
}

}  // namespace
}  // namespace hostwait::sim

using namespace hostwait::sim;

SIM_API(cuGraphInstantiate, (CUgraphExec * out, CUgraph g, CUgraphNode*, char*, size_t),
        instantiate(out, g, 0ull))
SIM_API(cuGraphInstantiate_v2, (CUgraphExec * out, CUgraph g, CUgraphNode*, char*, size_t),
        instantiate(out, g, 0ull))
SIM_API(cuGraphInstantiateWithFlags, (CUgraphExec * out, CUgraph g, unsigned long long flags),
        instantiate(out, g, flags))
SIM_API_PTSZ(cuGraphInstantiateWithParams,
             (CUgraphExec * out, CUgraph g, CUDA_GRAPH_INSTANTIATE_PARAMS* p),
             instantiate(out, g, p))
SIM_API_PTSZ(cuGraphLaunch, (CUgraphExec e, CUstream s), launch(e, s, per_thread))
SIM_API_PTSZ(cuGraphUpload, (CUgraphExec e, CUstream s), upload(e, s, per_thread))
SIM_API(cuGraphExecDestroy, (CUgraphExec e), destroy(e))
SIM_API(cuGraphExecGetFlags, (CUgraphExec e, cuuint64_t* out), flags_of(e, out))
SIM_API(cuGraphExecUpdate,
        (CUgraphExec e, CUgraph g, CUgraphNode*, CUgraphExecUpdateResult* status),
        update(e, g, status))
SIM_API(cuGraphExecUpdate_v2, (CUgraphExec e, CUgraph g, CUgraphExecUpdateResultInfo* info),
        update(e, g, info))
