// SPDX-License-Identifier: Apache-2.0
// Copyright The hostwait authors
// What the C and C++ cases share. A case has two parts, `observed` (hostwait must say what the
// file's head expects) and `control`. Each runs twice: a warm-up, then under the label
// "ID case" or "ID control", which its findings carry. What is prepared here carries the label
// "setup" and is judged by nobody.
#pragma once

#include <cuda.h>
#include <hostwait/hostwait.h>

#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <thread>

namespace cases {

struct part {
  const char* id;
  void (*observed)();
  void (*control)();
};

struct registration {
  explicit registration(const part& each);
};

#define HOSTWAIT_CASE(id, observed, control) \
  static const cases::registration registered({id, observed, control})

inline void must(int result, const char* what) {
  if (result == 0) return;
  fprintf(stderr, "%s: error %d\n", what, result);
  exit(3);
}
#define MUST(call) cases::must(static_cast<int>(call), #call)

// A statement about the program itself, not about hostwait's report: exit status 4 where false.
void expect(bool holds, const char* what);

// While it lives, calls of this thread carry the label "setup".
class setup {
 public:
  setup() : token_(hostwait_push_label(HOSTWAIT_LOG, HOSTWAIT_ALL, "setup")) {}
  ~setup() { hostwait_pop(token_); }
  setup(const setup&) = delete;
  setup& operator=(const setup&) = delete;

 private:
  int token_;
};

// All freed, after the work is done, when the part is over. Sizes in bytes; host memory is touched.
CUstream stream();           // non-blocking
CUstream blocking_stream();  // ordered with the legacy stream
CUevent event();
CUdeviceptr device(size_t bytes);
CUdeviceptr pool(size_t bytes);  // stream-ordered, ready to use; the caller frees it
CUdeviceptr managed(size_t bytes);
void* pinned(size_t bytes);
void* pageable(size_t bytes);

// A spinning kernel on the stream: work that a wait can be told by.
void busy(CUstream on, double milliseconds = 30);
// A kernel that is over at once.
void small_kernel(CUstream on);
// Waits for everything, as set-up.
void idle();
// Orders `then` behind `first` on the device.
void order(CUstream first, CUstream then);

// A thread with this name and the context.
std::thread worker(const char* name, std::function<void()> body);

}  // namespace cases
