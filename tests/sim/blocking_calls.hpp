// SPDX-License-Identifier: Apache-2.0
// Copyright The hostwait authors
// The labels of the blocking table as driver calls (the runtime-to-driver map that was logged).
#pragma once

#include <cuda.h>

#include <functional>
#include <map>
#include <string>

struct timed_call {
  std::function<void(CUstream busy)> call;
  std::function<void(CUstream busy)> before = nullptr;
  std::function<void(CUstream busy)> after = nullptr;
};

class blocking_calls {
 public:
  blocking_calls();
  ~blocking_calls();
  blocking_calls(const blocking_calls&) = delete;
  blocking_calls& operator=(const blocking_calls&) = delete;

  const timed_call* find(const std::string& label) const;
  CUstream busy(const std::string& name) const;

 private:
  void add(const std::string& label, timed_call call) { calls_[label] = std::move(call); }
  void add_waits();
  void add_copies();
  void add_shaped_copies();
  void add_memsets();
  void add_memory();
  void add_pools();
  void add_handles();
  void add_launches();
  void add_settings();
  void add_modules();

  static constexpr size_t big_ = 8 << 20;
  std::map<std::string, timed_call> calls_;
  CUstream blocking_, nonblocking_, second_;
  CUdeviceptr device_[2], managed_, symbol_;
  char *pinned_[2], *pageable_[2], *registered_;
  CUmodule module_;
  CUfunction tiny_;
  CUevent event_;
  // What a call of the table makes and its `after` ends, or the other way round.
  CUdeviceptr memory_ = 0;
  void* host_ = nullptr;
  CUstream stream_ = nullptr;
  CUevent made_event_ = nullptr;
  CUgraph graph_ = nullptr;
  CUgraphExec executable_ = nullptr;
  CUarray array_ = nullptr;
  CUmodule made_module_ = nullptr;
};
