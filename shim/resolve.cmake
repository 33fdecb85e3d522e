# SPDX-License-Identifier: Apache-2.0
# Copyright The hostwait authors
# Routes. What needs the wrappers or exports a hook is a hook source; the rest is core.
set(hostwait_route_core resolve_elf.cpp resolve_loader.cpp resolve_names.cpp resolve_copies.cpp
                        resolve_notes.cpp)
set(hostwait_route_hooks
    resolve_substitute.cpp
    resolve_dl.cpp
    resolve_slots.cpp
    resolve_start.cpp
    resolve_x86_64.S
    resolve_aarch64.S)
list(APPEND hostwait_core_sources ${hostwait_route_core})
list(APPEND hostwait_hook_sources ${hostwait_route_hooks})
# tests/routes builds the same sources into a library of its own.
set_property(GLOBAL PROPERTY hostwait_route_sources ${hostwait_route_core} ${hostwait_route_hooks})

# Parts of these run before the library is relocated: no call of libc may come from a loop that the
# compiler recognises as memcpy or strlen. Other parts run from our IFUNC: PLT slots are filled after
# it, GOT entries before.
set(hostwait_route_flags
    -fno-builtin -fno-plt
    $<$<CXX_COMPILER_ID:GNU>:-fno-tree-loop-distribute-patterns>)
set_property(GLOBAL PROPERTY hostwait_route_flags ${hostwait_route_flags})
foreach(source ${hostwait_route_core} ${hostwait_route_hooks})
  if(source MATCHES "cpp$")
    set_source_files_properties(${source} PROPERTIES COMPILE_OPTIONS "${hostwait_route_flags}")
  endif()
endforeach()
