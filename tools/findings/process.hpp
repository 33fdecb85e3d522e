// SPDX-License-Identifier: Apache-2.0
// Copyright The hostwait authors
// The head of one record: which process, was everything seen, where does it hang.
#pragma once

#include "finding.hpp"

namespace hostwait {

// Also adds the process's coverage (driver, routes, blind spots) to the report.
process_info describe_process(const record_file& record, run_report& report);

// The process that writes this record still runs: the file is open in its header and mapped in it.
bool is_being_written(const record_file& record);

}  // namespace hostwait
