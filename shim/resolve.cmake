# SPDX-License-Identifier: Apache-2.0
# Copyright The hostwait authors
# Routes. What needs the wrappers or exports a hook is a hook source; the rest is core.
list(
  APPEND
  hostwait_core_sources
  resolve_elf.cpp
  resolve_loader.cpp
  resolve_names.cpp
  resolve_copies.cpp
  resolve_notes.cpp)
set(hostwait_route_hooks
    resolve_substitute.cpp
    resolve_dl.cpp
    resolve_slots.cpp
    resolve_start.cpp
    resolve_x86_64.S
    resolve_aarch64.S)
list(APPEND hostwait_hook_sources ${hostwait_route_hooks})

# Parts of these run before the library is relocated: no call of libc may come from a loop that the
# compiler recognises as memcpy or strlen.
set_source_files_properties(
  resolve_elf.cpp
  resolve_loader.cpp
  resolve_names.cpp
  resolve_copies.cpp
  resolve_notes.cpp
  resolve_substitute.cpp
  resolve_dl.cpp
  resolve_slots.cpp
  resolve_start.cpp
  PROPERTIES COMPILE_OPTIONS "-fno-builtin;$<$<CXX_COMPILER_ID:GNU>:-fno-tree-loop-distribute-patterns>")
