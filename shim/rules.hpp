// SPDX-License-Identifier: Apache-2.0
// Copyright The hostwait authors
// The verdict rules by name; their functions stand in classify.cpp.
//
// Each line: name, what the call waits for, when it does not, what the rule rests on.
//   documented  NVIDIA's reference says so; holds on every driver
//   measured    seen on an H200 with driver 580 (CUDA 13.0); elsewhere the verdict is `unmeasured`
//   unmeasured  nobody has measured it yet: the verdict is `depends`
// "Its stream" means the legacy stream's scope (the legacy stream and all blocking streams) where
// the handle is the legacy null stream. scripts/generate_calls_doc.py prints this table.
#pragma once

#include <cstdint>

#include "row.hpp"

// clang-format off
#define HW_RULES                                                                                  \
  HW_RULE(context, "every stream of the context", "", "documented")                               \
  HW_RULE(stream, "its stream", "", "documented")                                                 \
  HW_RULE(event, "the work before the event", "the event was never recorded", "documented")       \
  HW_RULE(query, "nothing", "always; in a capture it can invalidate the capture", "documented")   \
  HW_RULE(copy_sync, "the null stream",                                                           \
          "both ends are device memory or arrays, without SYNC_MEMOPS", "documented and measured")\
  HW_RULE(copy_async, "its stream: pageable destination, host to host, managed host end, "        \
          "pageable source over 2 MiB; up to 2 MiB it depends on the room left for staging",      \
          "pinned memory, device memory or an array at both ends; a capturing stream",            \
          "documented and measured")                                                              \
  HW_RULE(copy_device, "nothing; the null stream with SYNC_MEMOPS, where it waits by name",       \
          "always; managed or pinned memory behind a device pointer is unmeasured",               \
          "documented and measured")                                                              \
  HW_RULE(copy_peer, "nothing, within one context", "always; between two contexts unmeasured",    \
          "measured")                                                                             \
  HW_RULE(copy_batch, "its stream: a pageable source that is read in stream order; of 3D batches " \
          "a pageable destination",                                                               \
          "pinned or device memory; a pageable source read during the call or at any time; a "    \
          "capturing stream; unmeasured: managed memory, arrays, more than 16 entries", "measured")\
  HW_RULE(memset_sync, "the null stream: pinned and managed memory, memory with SYNC_MEMOPS",     \
          "device memory", "documented and measured")                                             \
  HW_RULE(free, "every stream of the context", "a null pointer; memory of a pool", "measured")    \
  HW_RULE(release, "every stream of the context", "a null pointer", "measured")                   \
  HW_RULE(alloc, "nothing", "always, but for first-use set-up", "measured")                       \
  HW_RULE(module, "every stream of the context", "", "measured")                                  \
  HW_RULE(lazy_load, "every stream of the context at the first use of a kernel or symbol",        \
          "it is loaded already", "measured")                                                     \
  HW_RULE(limit, "every stream of the context: the stack size",                                   \
          "the printf buffer; other limits are unmeasured", "measured")                           \
  HW_RULE(reset, "every stream of the context", "", "measured")                                   \
  HW_RULE(measured_none, "nothing", "always", "measured")                                         \
  HW_RULE(enqueue, "its stream, when the queue is full (1,024 entries; fewer with inline copies)",\
          "room is left; a capturing stream", "measured")                                         \
  HW_RULE(launch, "as enqueue; its stream always under CUDA_LAUNCH_BLOCKING; every stream at the "\
          "first launch of a kernel that needs more local memory",                                \
          "room is left; a capturing stream", "measured")                                         \
  HW_RULE(graph_launch, "its stream, when the queue is full or the graph copies into pageable "    \
          "memory", "a capturing stream", "measured")                                             \
  HW_RULE(unmeasured, "unknown", "", "unmeasured")                                                \
  HW_RULE(state, "nothing", "always", "documented")                                               \
  HW_RULE(audit, "nothing that is known", "always", "unmeasured")
// clang-format on

namespace hostwait {

enum class rule_id : std::uint8_t {
#define HW_RULE(name, waits, not_when, basis) name,
  HW_RULES
#undef HW_RULE
      count
};

}  // namespace hostwait
