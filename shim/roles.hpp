// SPDX-License-Identifier: Apache-2.0
// Copyright The hostwait authors
// Where each call keeps its pointers, sizes, streams and events: one struct per argument shape,
// whose of() takes exactly the driver function's arguments.
//
// of() runs before the driver has checked anything: it reads the caller's descriptors but never
// through a null pointer, which the driver itself must report. per_thread is not set here, since
// it belongs to the row: row_is_per_thread().
#pragma once

#include "signatures.hpp"

#include "facts.hpp"

namespace hostwait::roles {

namespace detail {

inline std::uint64_t word(const void* handle) noexcept {
  return reinterpret_cast<std::uintptr_t>(handle);
}
inline operand host(const void* p) noexcept {
  return {p, declared::host};
}
inline operand device(std::uint64_t p) noexcept {
  return {reinterpret_cast<const void*>(p), declared::device};
}
inline operand unified(std::uint64_t p) noexcept {
  return {reinterpret_cast<const void*>(p), declared::unified};
}
inline operand array(CUarray a) noexcept {
  return {a, declared::array};
}

inline call_facts copy(operand source, operand destination, std::uint64_t bytes) noexcept {
  call_facts facts;
  facts.source = source;
  facts.destination = destination;
  facts.bytes = bytes;
  return facts;
}

inline call_facts on(call_facts facts, CUstream stream) noexcept {
  facts.stream = word(stream);
  facts.has_stream = true;
  return facts;
}

inline call_facts on(CUstream stream) noexcept {
  return on(call_facts{}, stream);
}

template <class First, class... Rest>
auto last(First first, Rest... rest) noexcept {
  if constexpr (sizeof...(Rest) == 0)
    return first;
  else
    return last(rest...);
}

}  // namespace detail

struct none {
  static call_facts of(auto...) noexcept { return {}; }
};

// A context handle in aux; nothing where the call has no argument (cuCtxSynchronize).
struct context_only {
  static call_facts of() noexcept { return {}; }
  static call_facts of(CUcontext context) noexcept {
    call_facts facts;
    facts.aux = detail::word(context);
    return facts;
  }
};

struct stream_first {
  static call_facts of(CUstream stream, auto...) noexcept { return detail::on(stream); }
};

struct stream_last {
  static call_facts of(auto... arguments) noexcept {
    return detail::on(detail::last(arguments...));
  }
};

// aux is the device, plus one.
struct primary_context {
  static call_facts of(const CUcontext*, CUdevice device) noexcept {
    call_facts facts;
    facts.aux = static_cast<std::uint64_t>(static_cast<unsigned>(device)) + 1;
    return facts;
  }
};

// Calls that run on the null stream without naming it.
struct null_stream {
  static call_facts of(auto...) noexcept { return detail::on(nullptr); }
};

// aux is the event.
struct event_only {
  static call_facts of(CUevent event) noexcept {
    call_facts facts;
    facts.aux = detail::word(event);
    return facts;
  }
};

struct event_pair {
  static call_facts of(float*, CUevent start, CUevent end) noexcept {
    call_facts facts;
    facts.aux = detail::word(start);
    facts.aux2 = detail::word(end);
    return facts;
  }
};

struct event_record {
  static call_facts of(CUevent event, CUstream stream, auto...) noexcept {
    call_facts facts = detail::on(stream);
    facts.aux = detail::word(event);
    return facts;
  }
};

struct stream_wait_event {
  static call_facts of(CUstream stream, CUevent event, unsigned) noexcept {
    call_facts facts = detail::on(stream);
    facts.aux = detail::word(event);
    return facts;
  }
};

// aux is the capture mode; the first form of cuStreamBeginCapture has only the global one (0).
struct capture_begin {
  static call_facts of(CUstream stream) noexcept { return detail::on(stream); }
  static call_facts of(CUstream stream, CUstreamCaptureMode mode) noexcept {
    call_facts facts = detail::on(stream);
    facts.aux = mode;
    return facts;
  }
};

struct capture_to_graph {
  static call_facts of(CUstream stream, CUgraph, const CUgraphNode*, const CUgraphEdgeData*, size_t,
                       CUstreamCaptureMode mode) noexcept {
    return capture_begin::of(stream, mode);
  }
};

// aux is the mode to be set; the driver writes the old one over it.
struct capture_mode {
  static call_facts of(const CUstreamCaptureMode* mode) noexcept {
    call_facts facts;
    if (mode) facts.aux = *mode;
    return facts;
  }
};

// aux is the function.
struct launch {
  static call_facts of(CUfunction function, unsigned, unsigned, unsigned, unsigned, unsigned,
                       unsigned, unsigned, CUstream stream, auto...) noexcept {
    call_facts facts = detail::on(stream);
    facts.aux = detail::word(function);
    return facts;
  }
};

struct launch_config {
  static call_facts of(const CUlaunchConfig* config, CUfunction function, auto...) noexcept {
    call_facts facts;
    if (config) facts = detail::on(config->hStream);
    facts.aux = detail::word(function);
    return facts;
  }
};

// aux is the limit, aux2 its new value.
struct limit {
  static call_facts of(CUlimit which, size_t value) noexcept {
    call_facts facts;
    facts.aux = which;
    facts.aux2 = value;
    return facts;
  }
};

// Memory that is given back stands in `destination`.
struct free_device {
  static call_facts of(std::uint64_t pointer) noexcept {
    return detail::copy({}, detail::device(pointer), 0);
  }
};

struct free_host {
  static call_facts of(const void* pointer) noexcept {
    return detail::copy({}, detail::host(pointer), 0);
  }
};

struct free_array {
  static call_facts of(CUarray array) noexcept { return detail::copy({}, detail::array(array), 0); }
};

struct range {
  static call_facts of(std::uint64_t pointer, size_t bytes) noexcept {
    return detail::copy({}, detail::device(pointer), bytes);
  }
};

// The address does not exist yet.
struct alloc {
  static call_facts of(const void*, size_t bytes, auto...) noexcept {
    return detail::copy({}, {}, bytes);
  }
};

struct alloc_async {
  static call_facts of(const void*, size_t bytes, CUstream stream) noexcept {
    return detail::on(detail::copy({}, {}, bytes), stream);
  }
};

struct alloc_from_pool {
  static call_facts of(const void*, size_t bytes, CUmemoryPool pool, CUstream stream) noexcept {
    call_facts facts = detail::on(detail::copy({}, {}, bytes), stream);
    facts.aux = detail::word(pool);
    return facts;
  }
};

struct host_register {
  static call_facts of(const void* pointer, size_t bytes, unsigned flags) noexcept {
    call_facts facts = detail::copy({}, detail::host(pointer), bytes);
    facts.aux = flags;
    return facts;
  }
};

}  // namespace hostwait::roles

#include "roles_copy.hpp"
