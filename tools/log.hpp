// SPDX-License-Identifier: Apache-2.0
// Copyright The hostwait authors
// The tool's own diagnostics, on stderr. Reports are output, not diagnostics: see report/.
#pragma once

#include <string>

namespace hostwait {

void set_verbose(bool verbose);
void log_error(const std::string& line);
void log_warning(const std::string& line);
void log_info(const std::string& line);
void log_verbose(const std::string& line);

}  // namespace hostwait
