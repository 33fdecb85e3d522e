// SPDX-License-Identifier: Apache-2.0
// Copyright The hostwait authors
// One case of a vector: its input, its steps, what they did.
#pragma once

#include <memory>

#include "vector_protocols.hpp"

namespace cai_test {

struct array {
  const json* object = nullptr;
  std::unique_ptr<raw_input> raw;
  std::unique_ptr<dl_object> dlpack;  // where the array comes by DLPack
  hostwait_cai_desc desc{}, mask{};
  hostwait_cai_loc loc{}, mask_loc{};
  bool resolved = false;
};

class runner {
 public:
  runner(const json& world_description, const json& vector, const json& test_case);

  std::string run();

 private:
  void refuse_what_c_lacks(const json& vector);
  void apply_driver_state();
  void apply_environment();
  uint64_t named_stream(const json& name, const json& from) const;
  uint64_t consumer_stream() const;

  // Hooks of the policy.
  static int producer_current(void* user, const hostwait_cai_ready* ready, uint64_t* stream);
  static int via_dlpack(void* user, const hostwait_cai_ready* ready, uint64_t consumer);

  // Steps.
  int step(const json& s);
  int compound_step(const json& s);
  int parse();
  int resolve();
  int readiness(std::vector<hostwait_cai_ready>* out);
  void exchange_readiness(const json& object, hostwait_cai_ready* ready);
  int acquire(const std::string& name, uint64_t stream);
  int release(const std::string& name);
  int wait_host(bool enqueue);
  int do_export();
  json exported_dict() const;
  int parse_export();
  int map_dlpack_stream();
  int dlpack_export();

  // A thread that used the library ends: what the driver is asked after its last statement.
  int thread_exit();
  std::string run_in_child(size_t next);

  // Defined in vector_compare.cpp.
  uint32_t flag_bit(const std::string& name) const;
  std::string compare_view(const json& view);
  std::string compare_dict(const json& dict);
  std::string compare_actions(const json& wanted);
  std::string compare_dlpack_calls(const json& wanted);
  std::string compare_stats(const json& wanted);
  bool events_shared();
  std::string compare_owner(const json& wanted);
  std::string compare_warning(bool wanted);
  std::string compare_dl_stream(const std::string& wanted);
  std::string compare_destroyed(const json& wanted);
  std::string compare_error(const json& expect);
  std::string compare_key(const std::string& key, const json& wanted);
  std::string compare();

  const json& case_;
  json given_, consumer_, objects_;
  world world_;
  fake_driver& driver_;
  hostwait_cai_hooks hooks_;
  hostwait_cai_policy policy_;
  hostwait_cai_error error_;
  hostwait_cai_stats before_;
  std::vector<std::unique_ptr<array>> arrays_;
  std::map<std::string, hostwait_cai_ticket> tickets_;
  std::vector<uint64_t> dlpack_calls_;
  hostwait_cai_exported exported_{};
  hostwait_cai_desc exported_desc_{};
  hostwait_cai_dl_action dl_action_{};
  uint64_t dl_stream_ = 0, exported_event_ = 0;
  int code_ = 0, calls_after_end_ = -1;
  bool parsed_ = false, round_trip_ = false;
};

}  // namespace cai_test
