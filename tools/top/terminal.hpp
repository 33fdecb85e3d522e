// SPDX-License-Identifier: Apache-2.0
// Copyright The hostwait authors
// The terminal of hostwait top: its alternate screen, single keys, its size.
#pragma once

#include <termios.h>

#include <cstddef>
#include <string>

namespace hostwait {

// Takes the terminal over and gives it back as it was, also at an exception. SIGINT, SIGTERM and
// SIGHUP end wait_for_key, so that the caller ends in order; one object at a time.
class terminal {
 public:
  terminal();
  ~terminal();
  terminal(const terminal&) = delete;
  terminal& operator=(const terminal&) = delete;

  // The key pressed within that time, 0 for none (also when the size changed), 'q' when the user,
  // a signal or the end of the terminal asks to stop.
  char wait_for_key(int milliseconds);
  // In place of what stands there. False: the terminal is gone.
  bool show(const std::string& frame);

  static std::size_t rows(int descriptor);  // 0: not known

 private:
  termios before_{};
  bool keys_ = false;
};

}  // namespace hostwait
