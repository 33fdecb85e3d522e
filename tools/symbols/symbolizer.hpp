// SPDX-License-Identifier: Apache-2.0
// Copyright The hostwait authors
// Turns addresses of a record into functions and lines, by the files on this machine.
#pragma once

#include <cstdint>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "frames.hpp"
#include "hostwait/record.h"

namespace hostwait {

class symbolizer {
 public:
  virtual ~symbolizer() = default;

  // The frames at one return address, innermost (inlined) first; never empty. `path` is the
  // module's; an empty one means that the address lies in no module.
  virtual std::vector<native_frame> resolve(const std::string& path,
                                            const hostwait_record_module& module,
                                            std::uint64_t return_address) = 0;

  // What stood in the way, one line each: a module changed since, or is missing.
  virtual std::set<std::string> notes() const { return {}; }
};

// By libdw, from the modules and their separate debug files (debug link, build id). With
// `ask_servers` also from those in DEBUGINFOD_URLS, at most 20 s a module and 60 s in all; else
// that variable is removed from this process.
std::unique_ptr<symbolizer> make_dwarf_symbolizer(bool ask_servers = false);

// module+0xoffset only; for tests and fuzzing.
std::unique_ptr<symbolizer> make_plain_symbolizer();

}  // namespace hostwait
