// SPDX-License-Identifier: Apache-2.0
// Copyright The hostwait authors
// The symbolizer that opens no file.
#include "symbolizer.hpp"

namespace hostwait {

namespace {

class plain_symbolizer final : public symbolizer {
 public:
  std::vector<native_frame> resolve(const std::string& path, const hostwait_record_module& module,
                                    std::uint64_t return_address) override {
    native_frame frame;
    frame.module = path;
    frame.offset = return_address - module.bias;
    frame.owner = owner_of(path, "", module.flags);
    return {frame};
  }
};

}  // namespace

std::unique_ptr<symbolizer> make_plain_symbolizer() {
  return std::make_unique<plain_symbolizer>();
}

}  // namespace hostwait
