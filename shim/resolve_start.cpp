// SPDX-License-Identifier: Apache-2.0
// Copyright The hostwait authors
// The two moments at start-up when routes are laid: our own relocations, and our constructor.
#include "resolve_internal.hpp"

using namespace hostwait;
using namespace hostwait::resolve;

extern "C" {

__attribute__((visibility("hidden"))) void hostwait_nothing() {}

// The loader calls this while it relocates us: libc and the libraries behind us in the list are
// relocated, no constructor has run, there is one thread and no environment yet.
__attribute__((visibility("hidden"))) void (*hostwait_early_resolver())() {
  note_startup();
  find_next();
  if (link_route()) look_at_links(link_pass::early);
  return hostwait_nothing;
}

__attribute__((visibility("hidden"), ifunc("hostwait_early_resolver"))) void hostwait_early();

// A data relocation against the IFUNC: it is applied with our other relocations, after them.
__attribute__((used, visibility("hidden"))) void (*volatile hostwait_early_slot)() = hostwait_early;

}  // extern "C"

namespace {

__attribute__((constructor)) void start() {
  if (startup_count() == 0) return;
  entry::armed(static_cast<row_id>(0));  // reads the options, routes=nolink among them
  look_at_links(link_pass::start);
}

}  // namespace
