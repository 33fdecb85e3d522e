// SPDX-License-Identifier: Apache-2.0
// Copyright The hostwait authors
// C++ guards over hostwait.h. C++17 and later, header only.
//
//   hostwait::guard g{hostwait::action::error, hostwait::sync};   // until the end of the scope
#ifndef HOSTWAIT_HOSTWAIT_HPP
#define HOSTWAIT_HOSTWAIT_HPP

#include <stdexcept>

#include "hostwait.h"

namespace hostwait {

enum class action {
  allow = HOSTWAIT_ALLOW,
  log = HOSTWAIT_LOG,
  fail = HOSTWAIT_FAIL,
  error = HOSTWAIT_ERROR,
  abort = HOSTWAIT_ABORT,
  trap = HOSTWAIT_TRAP
};

// Sets of kinds: combine with |.
enum class kinds : std::uint32_t {};
constexpr kinds operator|(kinds a, kinds b) noexcept {
  return static_cast<kinds>(static_cast<std::uint32_t>(a) | static_cast<std::uint32_t>(b));
}
inline constexpr kinds device_sync{HOSTWAIT_DEVICE_SYNC}, stream_sync{HOSTWAIT_STREAM_SYNC},
    event_sync{HOSTWAIT_EVENT_SYNC}, copy{HOSTWAIT_COPY}, async_copy{HOSTWAIT_ASYNC_COPY},
    memset{HOSTWAIT_MEMSET}, free{HOSTWAIT_FREE}, host_free{HOSTWAIT_HOST_FREE},
    alloc{HOSTWAIT_ALLOC}, module{HOSTWAIT_MODULE}, context{HOSTWAIT_CONTEXT},
    queue_full{HOSTWAIT_QUEUE_FULL}, poll{HOSTWAIT_POLL}, unlisted{HOSTWAIT_UNLISTED};
inline constexpr kinds explicit_sync{HOSTWAIT_EXPLICIT}, sync{HOSTWAIT_SYNC}, all{HOSTWAIT_ALL};

inline bool present() noexcept {
  return hostwait_present() != 0;
}

// A frame of the calling thread from construction to destruction, which must happen on the same
// thread, in reverse order of construction. Neither copied nor moved. Does nothing where the shim
// is absent. Throws std::invalid_argument for wrong arguments and kinds that were not armed at
// start, std::length_error where frames are nested too deep.
class guard {
 public:
  explicit guard(action what, kinds which = sync, const char* label = nullptr)
      : token_(hostwait_push_label(static_cast<hostwait_action>(what),
                                   static_cast<std::uint32_t>(which), label)) {
    check(token_);
  }
  ~guard() { hostwait_pop(token_); }
  guard(const guard&) = delete;
  guard& operator=(const guard&) = delete;

  static void check(int result) {
    if (result == HOSTWAIT_NOT_ARMED)
      throw std::invalid_argument("hostwait: the kind is not armed: start with --arm");
    if (result == HOSTWAIT_NO_ROOM) throw std::length_error("hostwait: too many nested frames");
    if (result < 0) throw std::invalid_argument("hostwait: unknown action or kind");
  }

 private:
  int token_;
};

// The same for every thread of the process.
class process_guard {
 public:
  explicit process_guard(action what, kinds which = sync, const char* label = nullptr)
      : token_(hostwait_push_process(static_cast<hostwait_action>(what),
                                     static_cast<std::uint32_t>(which), label)) {
    guard::check(token_);
  }
  ~process_guard() { hostwait_pop_process(token_); }
  process_guard(const process_guard&) = delete;
  process_guard& operator=(const process_guard&) = delete;

 private:
  int token_;
};

}  // namespace hostwait

#endif  // HOSTWAIT_HOSTWAIT_HPP
