// SPDX-License-Identifier: Apache-2.0
// Copyright The hostwait authors
// The guard between acquire and release, for a consumer with a stream and for the host.
// Part of cai_python.hpp.
#pragma once

#include <hostwait/cai_python/view.hpp>

#include <span>
#include <vector>

namespace hostwait::cai::py {

namespace detail {

/* Owners on their way through the retire queue. */
struct retired : droppable {
  std::vector<ref> owners;
};

inline void drop_retired(droppable* item) noexcept {
  delete static_cast<retired*>(item);
}

/* What the hooks need during one acquire. */
struct hook_call {
  no_gil_scope* scope;  // null: the GIL was kept
};

inline int producer_current(void* user, const hostwait_cai_ready* ready, uint64_t* stream) {
  no_gil_scope::retaken gil(static_cast<hook_call*>(user)->scope);
  auto* object = static_cast<PyObject*>(ready->producer);
  const dl_exchange_api* api = object != nullptr ? exchange_api_of(object) : nullptr;
  if (api == nullptr || api->current_work_stream == nullptr) return 0;
  hostwait_cai_ready current;
  HOSTWAIT_CAI_INIT(current);
  int ambiguous = 0;
  if (hostwait_cai_exchange_ready(api, HOSTWAIT_CAI_DL_CUDA, ready->device < 0 ? 0 : ready->device,
                                  &current, &ambiguous, nullptr) != HOSTWAIT_CAI_OK)
    return -1;
  *stream = ambiguous ? 0 : current.stream;
  return 1;
}

inline int via_dlpack(void* user, const hostwait_cai_ready* ready, uint64_t consumer) {
  no_gil_scope::retaken gil(static_cast<hook_call*>(user)->scope);
  auto* object = static_cast<PyObject*>(ready->producer);
  ref method;
  if (object == nullptr) return 0;
  if (!optional_attribute(object, state().dlpack, method)) return -1;
  if (!method) return 0;
  // The capsule is dropped unused: only the ordering was wanted.
  if (call_dlpack(method.get(), static_cast<long long>(consumer))) return 1;
  if (!PyErr_ExceptionMatches(PyExc_BufferError)) return -1;
  PyErr_Clear();  // refused for this stream or device: the chain goes on
  return 0;
}

}  // namespace detail

/* Between acquire and release: the consumer's stream is ordered behind the producers'. Destroying
 * the guard releases; release() does the same and reports. Made, moved and destroyed under the GIL,
 * never in a CUDA host callback. Exactly one back edge per producer stream, however it ends. */
class use {
 public:
  /* Makes `stream` wait for all of `views`. The host is not stopped, except by the policies that
   * say so. The GIL is free meanwhile. Null with an exception set; nothing is owed then. */
  static std::optional<use> acquire(hostwait_cai_stream stream, std::span<view* const> views,
                                    const options& chosen = options()) {
    return start(mode::stream, stream, views, chosen);
  }
  /* For a host that must not stop: returns at once, poll() tells when the data are ready. */
  static std::optional<use> acquire_host(std::span<view* const> views,
                                         const options& chosen = options()) {
    return start(mode::poll, {}, views, chosen);
  }
  /* Stops the host, without the GIL, until all of `views` are ready. */
  static std::optional<use> wait_host(std::span<view* const> views,
                                      const options& chosen = options()) {
    return start(mode::wait, {}, views, chosen);
  }

  use(use&& other) noexcept
      : ticket_(other.ticket_),
        owners_(std::move(other.owners_)),
        stream_(other.stream_),
        active_(std::exchange(other.active_, false)),
        calls_driver_(other.calls_driver_),
        keep_(other.keep_) {}
  use& operator=(use&&) = delete;
  ~use();

  /* The back edge; owners stay referenced until `stream` has passed this point. A second call does
   * nothing. False with an exception set; what could be ordered has been. */
  bool release();
  /* acquire_host: are the data ready? acquire: is the work enqueued so far done? False with an
   * exception set. */
  bool poll(bool& done);
  /* After a host wait: work is enqueued in `stream` after all, so that release owes it back. */
  bool attach(hostwait_cai_stream stream);

 private:
  enum class mode { stream, poll, wait };
  use() noexcept { HOSTWAIT_CAI_INIT(ticket_); }
  static std::optional<use> start(mode how, hostwait_cai_stream stream,
                                  std::span<view* const> views, const options& chosen);

  hostwait_cai_ticket ticket_;
  std::vector<ref> owners_;
  hostwait_cai_stream stream_{};
  bool active_ = false;
  bool calls_driver_ = true;
  bool keep_ = true;
};

inline std::optional<use> use::start(mode how, hostwait_cai_stream stream,
                                     std::span<view* const> views, const options& chosen) try {
  if (!detail::enter()) return std::nullopt;
  detail::drop_due();
  use result;
  result.stream_ = stream;
  result.keep_ = chosen.keep_alive;
  bool calls_driver = how != mode::stream;
  hostwait_cai_ready few[8];
  std::vector<hostwait_cai_ready> many;
  hostwait_cai_ready* ready = few;
  if (views.size() > 4) {
    many.resize(views.size() * 2);
    ready = many.data();
  }
  size_t count = 0;
  for (view* array : views) {
    for (unsigned i = 0; i < array->ready_count(); ++i) {
      if (array->ready(i).kind == HOSTWAIT_CAI_READY_UNKNOWN && !array->locate(chosen.policy))
        return std::nullopt;
      const hostwait_cai_ready& one = array->ready(i);
      calls_driver |= one.kind != HOSTWAIT_CAI_READY_NOW &&
                      (one.kind != HOSTWAIT_CAI_READY_STREAM || one.stream != stream.value);
      ready[count++] = one;
    }
    if (chosen.keep_alive && array->owner() != nullptr)
      result.owners_.push_back(ref::borrow(array->owner()));
  }

  detail::hook_call call{nullptr};
  hostwait_cai_hooks hooks;
  HOSTWAIT_CAI_INIT(hooks);
  hooks.user = &call;
  hooks.producer_current = detail::producer_current;
  hooks.via_dlpack = detail::via_dlpack;
  hostwait_cai_policy policy = chosen.policy;
  if (policy.hooks != nullptr) hooks.audit = policy.hooks->audit;
  policy.hooks = &hooks;

  hostwait_cai_error error;
  HOSTWAIT_CAI_INIT(error);
  const auto run = [&] {
    switch (how) {
      case mode::stream:
        return hostwait_cai_acquire(ready, count, stream, &policy, &result.ticket_, &error);
      case mode::poll:
        return hostwait_cai_acquire_host(ready, count, &policy, &result.ticket_, &error);
      default:
        return hostwait_cai_wait_host(ready, count, &policy, &result.ticket_, &error);
    }
  };
  int code;
  if (calls_driver) {
    // Even a record can block, on a full queue that only a host callback with the GIL would empty.
    no_gil_scope scope;
    call.scope = &scope;
    code = run();
  } else {
    code = run();
  }
  if (code != HOSTWAIT_CAI_OK) {
    set_error(error);
    return std::nullopt;
  }
  result.calls_driver_ = calls_driver;
  result.active_ = true;
  return result;
} catch (const std::bad_alloc&) {
  PyErr_NoMemory();
  return std::nullopt;
}

inline bool use::release() {
  if (!std::exchange(active_, false)) return true;
  std::unique_ptr<detail::retired> kept;
  // A host consumer has seen the end of its own work; without memory the owners go at once.
  if (keep_ && stream_.value != 0 && !owners_.empty())
    kept.reset(new (std::nothrow) detail::retired);
  if (kept) {
    kept->drop = detail::drop_retired;
    kept->owners = std::move(owners_);
  }
  hostwait_cai_error error;
  HOSTWAIT_CAI_INIT(error);
  int code;
  if (calls_driver_ || kept) {
    no_gil_scope scope;
    code = hostwait_cai_release(&ticket_, &error);
    // Not taken: no driver, so no work; or a capture, whose graph may run at any later time, so
    // that keeping the arrays is the graph owner's affair (R20).
    if (kept && hostwait_cai_retire_in(HOSTWAIT_CAI_QUEUE_PYTHON, stream_,
                                       static_cast<detail::droppable*>(kept.get()),
                                       nullptr) == HOSTWAIT_CAI_OK)
      (void)kept.release();
  } else {
    code = hostwait_cai_release(&ticket_, &error);
  }
  owners_.clear();
  return code == HOSTWAIT_CAI_OK || set_error(error);
}

inline use::~use() {
  if (!active_) return;
  if (detail::state().finalizing.load(std::memory_order_relaxed)) {
    // The interpreter is going away: its objects leak on purpose, no call into it is made.
    for (ref& owner : owners_) owner.release();
    return;
  }
  const gil_scope gil;
  const exception_scope pending;
  if (!release()) PyErr_WriteUnraisable(nullptr);
}

inline bool use::poll(bool& done) {
  int ready = 0;
  hostwait_cai_error error;
  HOSTWAIT_CAI_INIT(error);
  const int code = hostwait_cai_poll(&ticket_, &ready, &error);
  done = ready != 0;
  return code == HOSTWAIT_CAI_OK || set_error(error);
}

inline bool use::attach(hostwait_cai_stream stream) {
  hostwait_cai_error error;
  HOSTWAIT_CAI_INIT(error);
  if (hostwait_cai_attach(&ticket_, stream, &error) != HOSTWAIT_CAI_OK) return set_error(error);
  stream_ = stream;
  return true;
}

}  // namespace hostwait::cai::py
