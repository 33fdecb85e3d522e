// SPDX-License-Identifier: Apache-2.0
// Copyright The hostwait authors
// Escape sequences of ECMA-48 and xterm, written out: what they do here is one screenful of lines.
// curses would bring a terminal database that a carried, statically linked tool cannot count on,
// and the C++ screen libraries at hand are not packaged for the systems that hostwait builds on.
#include "terminal.hpp"

#include <poll.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <cerrno>

namespace hostwait {

namespace {

volatile sig_atomic_t asked_to_stop = 0;

void stop(int) {
  asked_to_stop = 1;
}
void resized(int) {}  // interrupts poll()

bool write_all(const std::string& text) {
  for (std::size_t done = 0; done < text.size();) {
    const ssize_t n = ::write(STDOUT_FILENO, text.data() + done, text.size() - done);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return false;
    done += static_cast<std::size_t>(n);
  }
  return true;
}

void handle(int number, void (*handler)(int)) {
  struct sigaction action {};
  action.sa_handler = handler;
  ::sigaction(number, &action, nullptr);
}

}  // namespace

terminal::terminal() {
  for (const int number : {SIGINT, SIGTERM, SIGHUP}) handle(number, stop);
  handle(SIGWINCH, resized);
  if (::tcgetattr(STDIN_FILENO, &before_) == 0) {
    keys_ = true;
    termios now = before_;
    now.c_lflag &= ~static_cast<tcflag_t>(ICANON | ECHO);
    now.c_cc[VSUSP] = _POSIX_VDISABLE;  // stopped, it would leave the other screen on
    ::tcsetattr(STDIN_FILENO, TCSANOW, &now);
  }
  write_all("\x1b[?1049h\x1b[?25l");  // alternate screen, no cursor
}

terminal::~terminal() {
  write_all("\x1b[?25h\x1b[?1049l");
  if (keys_) ::tcsetattr(STDIN_FILENO, TCSANOW, &before_);
}

char terminal::wait_for_key(int milliseconds) {
  if (asked_to_stop != 0) return 'q';
  pollfd in{keys_ ? STDIN_FILENO : -1, POLLIN, 0};
  const int ready = ::poll(&in, 1, milliseconds);
  if (asked_to_stop != 0) return 'q';
  if (ready <= 0) return 0;
  char key = 0;
  return ::read(STDIN_FILENO, &key, 1) == 1 ? key : 'q';
}

bool terminal::show(const std::string& frame) {
  // Each line is cleared behind its end, the screen below the last one: nothing flickers.
  std::string text = "\x1b[H";
  for (std::size_t at = 0; at < frame.size();) {
    const std::size_t end = frame.find('\n', at);
    text += frame.substr(at, end - at) + "\x1b[K";
    at = end == frame.npos ? frame.size() : end + 1;
    if (at < frame.size()) text += "\r\n";
  }
  return write_all(text + "\x1b[J");
}

std::size_t terminal::rows(int descriptor) {
  winsize size{};
  return ::ioctl(descriptor, TIOCGWINSZ, &size) == 0 ? size.ws_row : 0;
}

}  // namespace hostwait
