// SPDX-License-Identifier: Apache-2.0
// Copyright The hostwait authors
// Handles of graphs and nodes.
#pragma once

#include "capture.hpp"

namespace hostwait::sim {

graph* find_graph(CUgraph handle);
graph_node* find_node(CUgraphNode handle);

}  // namespace hostwait::sim
