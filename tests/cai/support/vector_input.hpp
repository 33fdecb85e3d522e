// SPDX-License-Identifier: Apache-2.0
// Copyright The hostwait authors
// From the vectors' JSON to the core's plain C input: worlds, descriptors, policies.
#pragma once

#include <deque>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>

#include "fake_driver.hpp"

namespace cai_test {

using nlohmann::json;

// Thrown when a case needs something that the C interface does not have.
struct not_expressible {
  std::string reason;
};

struct world {
  explicit world(const json& description);

  fake_driver driver;
  std::map<std::string, uint64_t> streams, contexts, memory, events;

  uint64_t stream(const json& name) const;  // "S", "1", "2", 0, "GONE"
  // A context again at its address, as after a reset: events of before are dead.
  void reset_context(const std::string& name);
};

// A descriptor and everything it points to.
class raw_input {
 public:
  raw_input(const json& cai, const world& w, bool from_dict = false);
  const hostwait_cai_raw* raw() const { return &raw_; }

 private:
  void read(const json& dict);
  void read_descr(const json& fields);

  const world& world_;
  hostwait_cai_raw raw_;
  std::string typestr_;
  std::vector<hostwait_cai_int> shape_, strides_;
  std::deque<std::string> field_names_;
  std::vector<hostwait_cai_field> fields_;
  std::unique_ptr<raw_input> mask_;
};

hostwait_cai_int read_int(const json& value, const world& w);
hostwait_cai_policy read_policy(const json& test_case, hostwait_cai_hooks* hooks);

}  // namespace cai_test
