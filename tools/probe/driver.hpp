// SPDX-License-Identifier: Apache-2.0
// Copyright The hostwait authors
// The driver under test: every row of the table and the few other functions that experiments
// need, by exact symbol from libcuda.so.1. Nothing is linked; what the driver lacks is null.
#pragma once

#include "signatures.hpp"

#include <array>
#include <string>

#include "row.hpp"

namespace hostwait::probe {

class driver {
 public:
  // Null and a reason where there is no driver.
  static driver* load(std::string& why);

  template <row_id Row>
  typename signature<Row>::type* get() const {
    return reinterpret_cast<typename signature<Row>::type*>(rows_[Row]);
  }
#define HW_PROBE_OTHER(symbol) decltype(&::symbol) symbol = nullptr;
#include "others.def"
#undef HW_PROBE_OTHER

  bool simulated() const {
    return simulated_;
  }
  const std::string& path() const {
    return path_;
  }
  std::string name_of(int result) const;  // CUDA_ERROR_…

 private:
  std::array<void*, row_count> rows_{};
  bool simulated_ = false;
  std::string path_;
};

}  // namespace hostwait::probe
