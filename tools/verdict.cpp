// SPDX-License-Identifier: Apache-2.0
// Copyright The hostwait authors
// Gates decide on verdicts and counts, never on time.
#include "verdict.hpp"

#include <fmt/core.h>

#include "failure.hpp"

namespace hostwait {

int gate_status(const run_report& report, bool require_cuda, std::string& reason) {
  if (report.config_error()) {
    reason =
        "HOSTWAIT_OPTIONS was wrong during the run, so its levels did not apply; "
        "HOSTWAIT_OPTIONS=help=1 lists the keys";
    return exit_usage;
  }
  if (report.violations() > 0) {
    std::size_t rows = 0;
    for (const finding& each : report.findings) rows += each.sum.violations > 0 ? 1 : 0;
    reason = fmt::format("{} violation{} in {} finding{}; hostwait report shows them",
                         report.violations(), report.violations() == 1 ? "" : "s", rows,
                         rows == 1 ? "" : "s");
    return exit_violations;
  }
  if (require_cuda && report.calls() == 0) {
    reason = "--require-cuda: no CUDA driver call seen; hostwait doctor says why that can be";
    return exit_unseen;
  }
  if (require_cuda && report.blind()) {
    reason = "--require-cuda: some driver calls could not be seen; hostwait report says which";
    return exit_unseen;
  }
  return exit_fine;
}

}  // namespace hostwait
