// SPDX-License-Identifier: Apache-2.0
// Copyright The hostwait authors
// hostwait, the command line tool.
#include "command.hpp"

int main(int argc, char** argv) {
  return hostwait::run_command_line(
      std::vector<std::string>(argv + (argc > 0 ? 1 : 0), argv + argc));
}
