// SPDX-License-Identifier: Apache-2.0
// Copyright The hostwait authors
#include "profile.hpp"

// The shim's own parser, so that both understand the same.
#include "../../shim/profile.hpp"

#include <fmt/core.h>

#include <fstream>
#include <iterator>
#include <memory>

#include "failure.hpp"

namespace hostwait {

void check_profile(const std::string& source, const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  const std::string text{std::istreambuf_iterator<char>(file), {}};
  if (!file || text.empty())
    throw failure(exit_usage, fmt::format("{}: {} cannot be read: name a file written by "
                                          "hostwait probe --save",
                                          source, path));
  const auto profile = std::make_unique<verdict_profile>();
  profile_problem problem;
  if (!profile->parse(text.data(), text.size(), problem))
    throw failure(exit_usage,
                  fmt::format("{}: {}: line {}: {}", source, path, problem.line, problem.what));
}

}  // namespace hostwait
