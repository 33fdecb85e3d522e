// SPDX-License-Identifier: Apache-2.0
// Copyright The hostwait authors
// spdlog, set up at the first line that is printed, so that a quiet run does not pay for it.
#include "log.hpp"

#include <spdlog/sinks/stdout_sinks.h>
#include <spdlog/spdlog.h>

#include "report/escape.hpp"

namespace hostwait {

namespace {

bool verbose_lines = false;

spdlog::logger& logger() {
  static spdlog::logger instance = [] {
    spdlog::logger made("hostwait", std::make_shared<spdlog::sinks::stderr_sink_mt>());
    made.set_pattern("hostwait: %v");
    made.set_level(spdlog::level::trace);
    return made;
  }();
  return instance;
}

}  // namespace

void set_verbose(bool verbose) {
  verbose_lines = verbose;
}
void log_error(const std::string& line) {
  logger().error("{}", for_terminal(line));
}
void log_warning(const std::string& line) {
  logger().warn("{}", for_terminal(line));
}
void log_info(const std::string& line) {
  logger().info("{}", for_terminal(line));
}
void log_verbose(const std::string& line) {
  if (verbose_lines) logger().debug("{}", for_terminal(line));
}

}  // namespace hostwait
