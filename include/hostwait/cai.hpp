// SPDX-License-Identifier: Apache-2.0
// Copyright The hostwait authors
//
// C++20 guards over cai.h; header only. An array is in use from the construction of
// hostwait::cai::use to its end, also when an exception ends it:
//
//     hostwait::cai::use in_use(stream, {a, b, out});   // `stream` waits for their producers
//     launch(stream);
//                                                       // the producers' streams wait for `stream`
//
// Thread-safety: one guard belongs to one thread at a time; destroy it on the thread that made it
// where stream 2 is involved.
#pragma once

#include <atomic>
#include <cstdint>
#include <initializer_list>
#include <new>
#include <span>
#include <utility>

#include "cai.h"

#if defined(__cpp_exceptions)
#include <stdexcept>
#endif

namespace hostwait::cai {

// A stream named without ambiguity. Made from a runtime or driver handle; the null handle becomes
// the legacy or the per-thread stream as this translation unit was compiled.
class stream {
 public:
  template <typename Handle>
  stream(Handle* handle) noexcept : value_(hostwait_cai_stream_of(handle)) {}
  stream(std::nullptr_t) = delete;  // say legacy or per_thread
  stream(int) = delete;             // 0, 1 and 2 mean different things elsewhere
  explicit constexpr stream(hostwait_cai_stream value) noexcept : value_(value) {}

  static constexpr stream legacy() noexcept {
    return stream(hostwait_cai_stream{HOSTWAIT_CAI_LEGACY});
  }
  static constexpr stream per_thread() noexcept {
    return stream(hostwait_cai_stream{HOSTWAIT_CAI_PER_THREAD});
  }

  constexpr operator hostwait_cai_stream() const noexcept { return value_; }
  constexpr std::uint64_t value() const noexcept { return value_.value; }
  friend constexpr bool operator==(stream a, stream b) noexcept { return a.value() == b.value(); }

 private:
  hostwait_cai_stream value_;
};

struct policy : hostwait_cai_policy {
  policy() noexcept { hostwait_cai_policy_init(this); }
  static policy strict() noexcept {
    policy p;
    hostwait_cai_policy_strict(&p);
    return p;
  }
};

// What went wrong; false where nothing did.
struct error : hostwait_cai_error {
  error() noexcept : hostwait_cai_error{} {
    size = sizeof(hostwait_cai_error);
    key = "";
  }
  explicit operator bool() const noexcept { return code != HOSTWAIT_CAI_OK; }
};

#if defined(__cpp_exceptions)
class failure : public std::runtime_error {
 public:
  explicit failure(const error& e) : std::runtime_error(e.text), error_(e) {}
  const error& details() const noexcept { return error_; }

 private:
  error error_;
};
#endif

// When something is ready.
struct ready : hostwait_cai_ready {
  ready() noexcept : hostwait_cai_ready{} {
    size = sizeof(hostwait_cai_ready);
    device = -1;
  }
  ready(const hostwait_cai_ready& other) noexcept : hostwait_cai_ready(other) {}
  explicit ready(const hostwait_cai_desc& desc, const hostwait_cai_loc* loc = nullptr,
                 void* producer = nullptr) noexcept {
    hostwait_cai_ready_from(&desc, loc, producer, this);
  }
  static ready behind(hostwait::cai::stream s) noexcept {
    ready r;
    r.kind = HOSTWAIT_CAI_READY_STREAM;
    r.stream = s.value();
    return r;
  }
};

// Called with the error of a back edge that a destructor could not issue. It must not throw.
using release_handler = void (*)(const error&) noexcept;
namespace detail {
inline std::atomic<release_handler> on_release_error{nullptr};
inline void raise(const error& e) {
#if defined(__cpp_exceptions)
  throw failure(e);
#else
  (void)e;
  __builtin_trap();
#endif
}
}  // namespace detail
inline void set_release_handler(release_handler handler) noexcept {
  detail::on_release_error.store(handler, std::memory_order_relaxed);
}

// Arrays in use by a stream. Move-only; a moved-from guard does nothing.
class [[nodiscard]] use {
 public:
  use() noexcept : ticket_{} {}
  // Throws `failure` (traps where exceptions are off; see the constructor below).
  use(stream consumer, std::span<const ready> arrays, const policy& p = policy()) {
    error e;
    if (acquire(consumer, arrays, p, &e) != HOSTWAIT_CAI_OK) detail::raise(e);
  }
  use(stream consumer, std::initializer_list<ready> arrays, const policy& p = policy())
      : use(consumer, std::span<const ready>(arrays.begin(), arrays.size()), p) {}
  // Never throws: an empty guard and a filled *e on failure.
  use(std::nothrow_t, stream consumer, std::span<const ready> arrays, error* e,
      const policy& p = policy()) noexcept {
    acquire(consumer, arrays, p, e);
  }
  ~use() {
    error e;
    if (hostwait_cai_release(&ticket_, &e) == HOSTWAIT_CAI_OK) return;
    const release_handler handler = detail::on_release_error.load(std::memory_order_relaxed);
    if (handler != nullptr) handler(e);
  }
  use(use&& other) noexcept : ticket_(std::exchange(other.ticket_, hostwait_cai_ticket{})) {}
  use& operator=(use&& other) noexcept {
    if (this != &other) {
      use ended(std::move(*this));
      ticket_ = std::exchange(other.ticket_, hostwait_cai_ticket{});
    }
    return *this;
  }
  use(const use&) = delete;
  use& operator=(const use&) = delete;

  // Ends the use now and says how that went.
  error finish() noexcept {
    error e;
    hostwait_cai_release(&ticket_, &e);
    return e;
  }
  // Has what was enqueued until the first call of done() completed? Never blocks.
  bool done(error* e = nullptr) noexcept {
    int yes = 0;
    return hostwait_cai_poll(&ticket_, &yes, e) == HOSTWAIT_CAI_OK && yes != 0;
  }
  hostwait_cai_ticket* ticket() noexcept { return &ticket_; }

 private:
  int acquire(stream consumer, std::span<const ready> arrays, const policy& p, error* e) noexcept {
    const hostwait_cai_ready* first = arrays.data();
    static_assert(sizeof(ready) == sizeof(hostwait_cai_ready));
    return hostwait_cai_acquire(first, arrays.size(), consumer, &p, &ticket_, e);
  }
  hostwait_cai_ticket ticket_;
};

// Blocks until all are ready, for consumers without CUDA work. Throws like `use`.
inline void wait_host(std::span<const ready> arrays, const policy& p = policy()) {
  error e;
  const hostwait_cai_ready* first = arrays.data();
  if (hostwait_cai_wait_host(first, arrays.size(), &p, nullptr, &e) != HOSTWAIT_CAI_OK) {
    detail::raise(e);
  }
}
inline void wait_host(std::initializer_list<ready> arrays, const policy& p = policy()) {
  wait_host(std::span<const ready>(arrays.begin(), arrays.size()), p);
}

}  // namespace hostwait::cai
