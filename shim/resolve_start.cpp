// SPDX-License-Identifier: Apache-2.0
// Copyright The hostwait authors
// The two moments at start-up when routes are laid: our own relocations, and our constructor.
#include "resolve_internal.hpp"

namespace hostwait::resolve {

namespace {

void nothing() {}

extern "C" {

// The loader calls this while it relocates us: libc and the libraries behind us in the list are
// relocated, no constructor has run, there is one thread and no environment yet.
__attribute__((used)) static void (*hostwait_early_resolver())() {
  note_startup();
  find_next();
  if (link_route()) look_at_links(link_pass::early);
  return nothing;
}

__attribute__((ifunc("hostwait_early_resolver"), visibility("hidden"))) void hostwait_early();

}  // extern "C"

// A data relocation against the IFUNC: it is applied with our other relocations, after them.
__attribute__((used)) void (*const volatile early)() = hostwait_early;

__attribute__((constructor)) void start() {
  if (startup_count() == 0) return;
  entry::armed(static_cast<row_id>(0));  // reads the options, routes=nolink among them
  look_at_links(link_pass::start);
}

}  // namespace

}  // namespace hostwait::resolve
