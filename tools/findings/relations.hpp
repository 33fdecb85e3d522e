// SPDX-License-Identifier: Apache-2.0
// Copyright The hostwait authors
// What a record says of two threads at once: broken captures, and who was held up by whom.
#pragma once

#include <functional>

#include "finding.hpp"

namespace hostwait {

// Gives the finding of a site, with names and fingerprint; null for a number that is none.
using site_finder = std::function<std::shared_ptr<const finding>(std::uint32_t)>;

// Both add to what is there: equal relations of several records become one.
void add_captures(const record_file& record, const site_finder& find,
                  std::vector<broken_capture>& to);
void add_holder(const record_file& record, const hostwait_record_holder& entry,
                const site_finder& find, std::vector<holding_call>& to);
void add_holders(const std::vector<holding_call>& from, std::vector<holding_call>& to);

const char* capture_mode_name(std::uint32_t mode);

}  // namespace hostwait
